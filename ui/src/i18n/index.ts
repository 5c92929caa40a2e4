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

/** Why a person must look. */
export function reasonWords(text: Catalogue, reason: string): string {
  return own(text.reason, reason.replaceAll('_', '-')) ?? reason;
}

export function eventWords(text: Catalogue, event: string): string {
  return own(text.event, event) ?? event;
}
