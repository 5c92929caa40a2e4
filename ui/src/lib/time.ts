import { tagOf, type Locale } from './money';

/** Milliseconds of an RFC 3339 time; more than three decimals are cut, since not every engine reads them. */
export function instant(time: string): number {
  return Date.parse(time.replace(/(\.\d{3})\d+/, '$1'));
}

export type Age = { unit: 'second' | 'minute' | 'hour' | 'day'; value: number };

/** How long ago, in the largest whole unit. A time in the future, after a clock was set back, is "now". */
export function ageOf(time: string, now: number): Age {
  const seconds = Math.max(0, Math.floor((now - instant(time)) / 1000));
  if (seconds < 60) return { unit: 'second', value: seconds };
  if (seconds < 3600) return { unit: 'minute', value: Math.floor(seconds / 60) };
  if (seconds < 172_800) return { unit: 'hour', value: Math.floor(seconds / 3600) };
  return { unit: 'day', value: Math.floor(seconds / 86_400) };
}

export function formatClock(time: string, locale: Locale): string {
  return new Intl.DateTimeFormat(tagOf(locale), { hour: '2-digit', minute: '2-digit', second: '2-digit' }).format(instant(time));
}

export function formatDateTime(time: string, locale: Locale): string {
  return new Intl.DateTimeFormat(tagOf(locale), { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' }).format(instant(time));
}

/** Hours and minutes of what happened today; with its day where it was another. */
export function formatWhen(time: string, locale: Locale, now = Date.now()): string {
  if (new Date(instant(time)).toDateString() !== new Date(now).toDateString()) return formatDateTime(time, locale);
  return new Intl.DateTimeFormat(tagOf(locale), { hour: '2-digit', minute: '2-digit' }).format(instant(time));
}
