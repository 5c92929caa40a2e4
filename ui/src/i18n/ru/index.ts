import type { Catalogue } from '../en';
import { app } from './app';
import { sale } from './sale';
import { pay } from './pay';
import { payments } from './payments';

export const ru: Catalogue = { ...app, ...sale, ...pay, ...payments };
