import { declineWords, reasonWords, type Catalogue } from '../i18n';
import { formatAmount, type Locale } from './money';
import type { Panel, StatePanelId } from './panel';
import { formatWhen } from './time';
import type { LateDecline, OfflineAsk, Operation } from './types';

export type Words = { headline: string; second: string };

/** What the words need beside the operation. */
export type About = {
  /** It is known that nothing ever left the till. */
  neverSent?: boolean;
  /** The late decline that it belongs to. */
  late?: LateDecline | null;
};

/** The two lines of a payment panel. */
export function panelWords(panel: StatePanelId, operation: Operation, text: Catalogue, locale: Locale, about: About = {}): Words {
  const amount = formatAmount(operation.amount, operation.currency, locale);
  const words = text.panel;
  switch (panel) {
    case 'pay-sending':
      return {
        headline: words.sending.headline(amount),
        second: `${words.sending.before} ${operation.shortCode}${words.sending.after}`,
      };
    case 'pay-approved':
      return {
        headline: words.approved.headline(amount),
        second: operation.approvalCode === null ? words.approved.secondNoCode : words.approved.second(operation.approvalCode),
      };
    case 'pay-declined':
      return { headline: words.declined.headline, second: words.declined.second(declineWords(text, operation.declineCode)) };
    case 'pay-unknown':
      return { headline: words.unknown.headline, second: words.unknown.second };
    case 'pay-cancelled':
      return {
        headline: (about.neverSent ?? operation.attempts === 0) ? words.cancelled.headlineNeverSent : words.cancelled.headline,
        second: words.cancelled.second,
      };
    case 'pay-attention':
      return {
        headline: words.attention.headline,
        second: words.attention.second(operation.reason === null ? null : reasonWords(text, operation.reason)),
      };
    case 'pay-offline-ok':
      return { headline: text.offline.ok, second: text.offline.okSecond };
    case 'pay-late-decline':
      return about.late ? lateWords(about.late, text, locale) : lateOperationWords(operation, text, locale);
  }
}

/** A payment whose late decline is not loaded yet: the operation says as much as it knows. */
function lateOperationWords(operation: Operation, text: Catalogue, locale: Locale): Words {
  const amount = formatAmount(operation.amount, operation.currency, locale);
  const headline = operation.state === 'cancelled' ? text.late.headlineCancelled : text.late.headline;
  const sale = String(operation.receiptNumber ?? operation.saleNumber ?? '');
  return { headline: headline(amount), second: text.late.second(sale, formatWhen(operation.createdAt, locale)) };
}

/** The two lines of a late decline, wherever it stands. */
export function lateWords(late: LateDecline, text: Catalogue, locale: Locale): Words {
  const amount = formatAmount(late.amount, late.currency, locale);
  const sale = text.late.second(String(late.receiptNumber ?? late.saleNumber ?? ''), formatWhen(late.takenAt, locale));
  switch (late.state) {
    case 'open': {
      const cancelled = late.operation.state === 'cancelled';
      return { headline: (cancelled ? text.late.headlineCancelled : text.late.headline)(amount), second: sale };
    }
    case 'attention':
      return { headline: text.late.headlineAttention(amount), second: sale };
    case 'collecting':
      return { headline: text.late.headlineCollecting(amount), second: text.late.collectingSecond };
    case 'settled':
      return { headline: text.late.headlineSettled(amount), second: sale };
    case 'writing_off':
      return { headline: text.late.headlineWritingOff(amount), second: text.late.writingOffSecond };
    case 'written_off': {
      const { reason, writtenOffBy } = late;
      return {
        headline: text.late.headlineWrittenOff(amount),
        second: reason === null || writtenOffBy === null ? sale : text.late.writtenOffSecond(reason, writtenOffBy),
      };
    }
  }
}

/** The limit that a payment is over, in the headline, and each of them with its figures. */
export function limitWords(ask: OfflineAsk, text: Catalogue, locale: Locale): Words & { over: string[] } {
  const words = text.offline;
  const money = (amount: number) => formatAmount(amount, ask.currency, locale);
  const figures = {
    payment: () => money(ask.paymentMax),
    sum: () => money(ask.sumMax),
    count: () => words.count(ask.countMax),
    age: () => words.hours(ask.ageMaxH),
    currency: () => words.otherCurrency,
  };
  const over = {
    payment: () => words.over.payment(money(ask.amount), money(ask.paymentMax)),
    sum: () => words.over.sum(money(ask.amount), money(ask.stored), money(ask.sumMax)),
    count: () => words.over.count(ask.payments, words.count(ask.countMax)),
    age: () => words.over.age(ask.ageMaxH),
    currency: () => words.over.currency,
  };
  const [first] = ask.over;
  return {
    headline: words.limit(first === undefined ? '' : figures[first]()),
    second: words.limitSecond,
    over: ask.over.map((each) => over[each]()),
  };
}

/** The two lines of whatever is in front. */
export function frontWords(panel: Panel, operation: Operation, ask: OfflineAsk | null, text: Catalogue, locale: Locale, about: About): Words {
  if (panel !== 'pay-offline-ask' && panel !== 'pay-offline-limit') return panelWords(panel, operation, text, locale, about);
  if (ask === null) return { headline: text.offline.headline, second: text.offline.second };
  return panel === 'pay-offline-ask' ? askWords(ask, text, locale) : limitWords(ask, text, locale);
}

/** What would be at risk, as the cashier reads it before taking a payment offline. */
export function askWords(ask: OfflineAsk, text: Catalogue, locale: Locale): Words {
  const money = (amount: number) => formatAmount(amount, ask.currency, locale);
  const figures = text.offline.figures(money(ask.amount), money(ask.stored), money(ask.sumMax));
  return { headline: text.offline.headline, second: `${text.offline.second} ${figures}` };
}
