import type { Catalogue } from '../en';
import { app } from './app';
import { errors } from './errors';
import { lab } from './lab';
import { sale } from './sale';
import { pay } from './pay';
import { payments } from './payments';

export const ru: Catalogue = { ...app, ...errors, ...lab, ...sale, ...pay, ...payments };
