import type { Locale } from '../lib/money';
import { en, type Catalogue } from './en';
import { ru } from './ru';

export type { Catalogue };
export const catalogues: Record<Locale, Catalogue> = { en, ru };

function own(table: Record<string, string>, code: string): string | undefined {
  return Object.hasOwn(table, code) ? table[code] : undefined;
}

/** A bank's decline code in words. A code that is new to this window still says who refused. */
export function declineWords(text: Catalogue, code: string | null): string {
  return (code === null ? undefined : own(text.decline, code)) ?? text.decline.other;
}

/** Why it is not final. Codes come with dashes or underscores; an unknown one is shown as it is. */
export function answerWords(text: Catalogue, code: string): string {
  return own(text.answer, code.replaceAll('_', '-')) ?? code;
}

/** Why a person must look: a code, a code with more after a colon, or free text, which stays as it is. */
export function reasonWords(text: Catalogue, reason: string): string {
  const code = reason.split(':', 1)[0] ?? reason;
  // For whom it waits is the one thing that a cashier can act on.
  if (code === 'other-bank') return text.otherBank(reason.slice(code.length + 1).trim());
  return own(text.reason, code.replaceAll('_', '-')) ?? reason;
}

/** One step of a payment's history: `POST /v1/payments · 409 · in-progress`, with words where there are any. */
export function detailWords(text: Catalogue, detail: string): string {
  return detail
    .split(' · ')
    .map((part) => {
      const seconds = /^come back in (\d+) s$/.exec(part)?.[1];
      return seconds === undefined ? answerWords(text, part) : text.comeBack(seconds);
    })
    .join(' · ');
}

/** The name of a test card. Those that are a word come by their token; brands and digits are the same everywhere. */
export function cardWords(text: Catalogue, token: string, label: string): string {
  const [, name = '', number = ''] = /^tok_(.+?)(_\d+)?$/.exec(token) ?? [];
  const word = own(text.pay.cards, name);
  const digits = / (··.*)$/.exec(label)?.[1];
  return word === undefined ? label : [word, number.slice(1), digits].filter(Boolean).join(' ');
}

export function eventWords(text: Catalogue, event: string): string {
  return own(text.event, event) ?? event;
}
