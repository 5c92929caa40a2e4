// Quantities are decimal strings with at most three decimals. Steps are taken in whole
// thousandths, so that 0.1 + 0.2 is 0.3.

const THOUSANDTHS = 1000n;
/** The largest quantity that a key can make; the till has the last word. */
const MAX = 9_999_999n;

export function toThousandths(quantity: string): bigint | null {
  const match = /^(\d{1,7})(?:\.(\d{1,3}))?$/.exec(quantity);
  if (!match) return null;
  return BigInt(match[1] ?? '0') * THOUSANDTHS + BigInt((match[2] ?? '').padEnd(3, '0'));
}

export function fromThousandths(thousandths: bigint): string {
  const whole = thousandths / THOUSANDTHS;
  const rest = (thousandths % THOUSANDTHS).toString().padStart(3, '0').replace(/0+$/, '');
  return rest === '' ? whole.toString() : `${whole}.${rest}`;
}

/** One more or one less; a weighed article moves by a tenth. Null where that would leave nothing. */
export function step(quantity: string, unit: 'piece' | 'weight', direction: 1 | -1): string | null {
  const now = toThousandths(quantity);
  if (now === null) return null;
  const next = now + BigInt(direction) * (unit === 'weight' ? 100n : THOUSANDTHS);
  return next <= 0n || next > MAX ? null : fromThousandths(next);
}

/** `0.35` as the locale writes it, with no grouping. */
export function formatQuantity(quantity: string, decimalSign: string): string {
  return quantity.replace('.', decimalSign);
}
