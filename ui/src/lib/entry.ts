// What the keypad writes: a count, a weight, an amount in minor units, a percentage.

import type { Unit } from './types';

export type By = 'percent' | 'amount';

/** What is asked for. A weight and an open price are of an article that is no line yet. */
export type Asking =
  | { what: 'quantity'; lineId: string }
  | { what: 'weight'; code: string; name: string }
  | { what: 'open-price'; code: string; name: string; quantity: string | null }
  | { what: 'price'; lineId: string }
  | { what: 'line-discount'; lineId: string; by: By }
  | { what: 'sale-discount'; by: By };

export type Form = 'count' | 'weight' | 'percent' | 'money';

/** An article that is no line yet goes on being asked for, whatever line is looked at. */
export function isOfArticle(asking: Asking): asking is Extract<Asking, { code: string }> {
  return asking.what === 'weight' || asking.what === 'open-price';
}

export function formOf(asking: Asking, unit: Unit): Form {
  switch (asking.what) {
    case 'quantity':
      return unit === 'weight' ? 'weight' : 'count';
    case 'weight':
      return 'weight';
    case 'price':
    case 'open-price':
      return 'money';
    default:
      return asking.by === 'percent' ? 'percent' : 'money';
  }
}

const shapes: Record<Form, RegExp> = {
  count: /^\d{0,5}$/,
  weight: /^\d{0,5}(\.\d{0,3})?$/,
  percent: /^\d{0,3}(\.\d{0,3})?$/,
  money: /^\d{0,8}$/,
};

/** What stands there after one more key. A key that does not fit changes nothing. */
export function typed(form: Form, before: string, key: string): string {
  if (key === 'backspace') return before.slice(0, -1);
  const next = key === '.' ? `${before || '0'}.` : (before + key).replace(/^0+(?=\d)/, '');
  return shapes[form].test(next) ? next : before;
}

/** As the till reads it: no decimal sign at the end. */
export function finished(text: string): string {
  return text.replace(/\.$/, '');
}

/** Whether it says more than nothing. */
export function isSome(text: string): boolean {
  return /[1-9]/.test(text);
}
