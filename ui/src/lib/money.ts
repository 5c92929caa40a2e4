// Money as text. Amounts come in whole minor units and leave as strings put together from their
// own digits: no division, no fraction, no floating point on the way.

export type Locale = 'en' | 'ru';

/** Locales with a country, for the grouping and the order that people expect of a receipt. */
const tags: Record<Locale, string> = { en: 'en-GB', ru: 'ru-RU' };

export function tagOf(locale: Locale): string {
  return tags[locale];
}

/** Digits after the decimal sign of a currency: 0 for JPY, 2 for EUR, 3 for BHD. */
export function decimalsOf(currency: string): number {
  return new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits ?? 2;
}

/** `-5` with 2 decimals as `['-', '0', '05']`. */
function pieces(amount: number, decimals: number): [sign: string, whole: string, fraction: string] {
  if (!Number.isSafeInteger(amount)) throw new RangeError('an amount is a whole number of minor units');
  const sign = amount < 0 ? '-' : '';
  const digits = String(amount).replace('-', '').padStart(decimals + 1, '0');
  const cut = digits.length - decimals;
  return [sign, digits.slice(0, cut), digits.slice(cut)];
}

function decimalSign(locale: Locale): string {
  const parts = new Intl.NumberFormat(tags[locale], { minimumFractionDigits: 1 }).formatToParts(0);
  return parts.find((part) => part.type === 'decimal')?.value ?? '.';
}

/** `2490` as `24.90`: the bare figure, where the currency is plain from its place. */
export function formatAmount(amount: number, currency: string, locale: Locale): string {
  const [sign, whole, fraction] = pieces(amount, decimalsOf(currency));
  const grouped = new Intl.NumberFormat(tags[locale], { useGrouping: true }).format(BigInt(whole));
  const figure = fraction === '' ? grouped : grouped + decimalSign(locale) + fraction;
  return sign === '' ? figure : `\u2212${figure}`;
}

/** `2490` as `€24.90`: with the currency's sign where the locale puts it. */
export function formatMoney(amount: number, currency: string, locale: Locale): string {
  const figure = formatAmount(amount, currency, locale).replace('\u2212', '');
  const template = new Intl.NumberFormat(tags[locale], {
    style: 'currency',
    currency,
    currencyDisplay: 'narrowSymbol',
    maximumFractionDigits: 0,
  }).formatToParts(0);
  const text = template.map((part) => (part.type === 'integer' ? figure : part.value)).join('');
  return amount < 0 ? `\u2212${text}` : text;
}
