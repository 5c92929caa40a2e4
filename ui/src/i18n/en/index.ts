// The texts of the window in English. The shape of this object is the catalogue: a language that
// lacks one of its texts does not pass the type check.

import { app } from './app';
import { errors } from './errors';
import { lab } from './lab';
import { sale } from './sale';
import { hands } from './hands';
import { pay } from './pay';
import { payments } from './payments';
import { risk } from './risk';

export const en = { ...app, ...errors, ...lab, ...sale, ...hands, ...pay, ...payments, ...risk };

export type Catalogue = typeof en;
