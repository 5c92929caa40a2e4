import { declineWords, reasonWords, type Catalogue } from '../i18n';
import { formatAmount, type Locale } from './money';
import { neverSent, type Panel } from './panel';
import type { Operation } from './types';

/** The two lines of a payment panel. */
export function panelWords(panel: Panel, operation: Operation, text: Catalogue, locale: Locale): { headline: string; second: string } {
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
        headline: neverSent(operation) ? words.cancelled.headlineNeverSent : words.cancelled.headline,
        second: words.cancelled.second,
      };
    case 'pay-attention':
      return {
        headline: words.attention.headline,
        second: words.attention.second(operation.reason === null ? null : reasonWords(text, operation.reason)),
      };
  }
}
