// What crosses between the window and the till, as the till's commands declare it. Amounts are
// whole minor units and are never computed with here: the till says every figure.

export type * from './ipc.gen';
