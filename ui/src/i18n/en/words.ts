/** 1 line, 2 lines. */
export const count = (n: number, one: string, many: string) => `${n} ${n === 1 ? one : many}`;
