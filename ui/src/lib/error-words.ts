// What a person reads of an error: what happened, whether the money is safe, what to do. By its
// code; the message that comes with it is for the log.

import type { Catalogue } from '../i18n';
import { formatMoney, type Locale } from './money';
import type { CommandError, ErrorCode } from './types';

type Money = keyof Catalogue['errorMoney'];

/** Codes of which a person would ask about the money first. Of the others: nothing was changed. */
const money: Partial<Record<ErrorCode, Money>> = {
  'accepted-offline': 'kept',
  'already-final': 'kept',
  'card-may-be-charged': 'kept',
  'intent-reused': 'kept',
  'needs-look': 'kept',
  'not-refundable': 'kept',
  'offline-limit': 'kept',
  'over-refund': 'kept',
  'sale-frozen': 'kept',
  'payment-unmatched': 'kept',
  'sale-not-completed': 'kept',
  'invalid-amount': 'untouched',
  'invalid-card': 'untouched',
  'no-bank': 'untouched',
  'over-due': 'untouched',
  restored: 'untouched',
  'restored-sale': 'untouched',
  'sale-changed': 'untouched',
  'no-printer': 'safe',
  'printer-disconnected': 'safe',
  'printer-disk-full': 'safe',
  'printer-fault': 'safe',
  'printer-no-permission': 'safe',
  'printer-not-found': 'safe',
  'printer-refused': 'safe',
  'printer-timeout': 'safe',
  'printer-unreachable': 'safe',
  internal: 'open',
  storage: 'open',
};

export type ErrorWords = { what: string; money: string; todo: string };

export function errorWords(error: CommandError, text: Catalogue, locale: Locale): ErrorWords {
  const figures = figuresOf(error, text, locale);
  const what = text.error[error.code];
  return {
    what: figures === '' ? what : `${what} ${figures}`,
    money: text.errorMoney[money[error.code] ?? 'unchanged'],
    todo: text.errorTodo[error.code],
  };
}

/** The figures that came with it, where there are any. */
function figuresOf({ details }: CommandError, text: Catalogue, locale: Locale): string {
  const words = text.errorFigures;
  switch (details?.kind) {
    case 'wrong-pin':
      return details.waitS > 0 ? words.wait(details.waitS) : words.triesLeft(details.triesLeft);
    case 'pin-wait':
      return words.wait(details.waitS);
    case 'over-due':
      return words.due(formatMoney(details.due, details.currency, locale));
    case 'over-refund':
      return words.left(formatMoney(details.left, details.currency, locale));
    case 'category-in-use':
      return words.articles(details.articles, details.name);
    case undefined:
      return '';
  }
}
