import type { Catalogue } from '../i18n';
import { formatAmount, type Locale } from './money';
import { ageOf } from './time';
import type { Summary } from './types';

/** The chip's words. It counts what is unsettled, not whether the link is up. */
export function chipWords(summary: Summary, text: Catalogue, locale: Locale, now: number): string {
  const { chip, unsettled, needsAttention } = summary;
  switch (chip) {
    case 'ok':
      return text.chip.ok;
    case 'busy':
      return text.chip.busy(unsettled);
    case 'waiting': {
      const sums = summary.amounts.map(({ amount, currency }) => formatAmount(amount, currency, locale)).join(' + ');
      return text.chip.waiting(unsettled, sums, summary.oldestAt === null ? null : text.age(ageOf(summary.oldestAt, now)));
    }
    case 'paused':
      return text.chip.paused(unsettled);
    case 'attention': {
      const look = text.chip.attention(needsAttention);
      return unsettled === 0 ? look : `${look} · ${text.chip.waitingShort(unsettled)}`;
    }
  }
}

/** What a screen reader is told of a change: counts, but no age, which would speak every minute. */
export function chipAnnouncement(summary: Summary, text: Catalogue, locale: Locale): string {
  return chipWords({ ...summary, oldestAt: null }, text, locale, 0);
}
