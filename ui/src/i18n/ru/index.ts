import type { Catalogue } from '../en';
import { app } from './app';
import { errors } from './errors';
import { lab } from './lab';
import { sale } from './sale';
import { hands } from './hands';
import { pay } from './pay';
import { payments } from './payments';
import { risk } from './risk';

export const ru: Catalogue = { ...app, ...errors, ...lab, ...sale, ...hands, ...pay, ...payments, ...risk };
