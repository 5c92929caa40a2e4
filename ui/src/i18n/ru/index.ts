import type { Catalogue } from '../en';
import { app } from './app';
import { sale } from './sale';
import { pay } from './pay';
import { payments } from './payments';
import { risk } from './risk';

export const ru: Catalogue = { ...app, ...sale, ...pay, ...payments, ...risk };
