// The texts of the window in English. The shape of this object is the catalogue: a language that
// lacks one of its texts does not pass the type check.

import { app } from './app';
import { sale } from './sale';
import { pay } from './pay';
import { payments } from './payments';
import { risk } from './risk';

export const en = { ...app, ...sale, ...pay, ...payments, ...risk };

export type Catalogue = typeof en;
