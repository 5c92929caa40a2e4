const plural = new Intl.PluralRules('ru-RU');

/** 1 строка, 2 строки, 5 строк. */
export function forms(n: number, one: string, few: string, many: string): string {
  const rule = plural.select(n);
  return rule === 'one' ? one : rule === 'few' ? few : many;
}

export const lines = (n: number) => `${n} ${forms(n, 'позиция', 'позиции', 'позиций')}`;
