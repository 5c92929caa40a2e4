// Which panel tells the truth about a payment. Pure: the same operation, summary and time give
// the same panel in the dialog, after a restart and in a test.

import { instant } from './time';
import type { OfflineAsk, Operation, Summary } from './types';

/** What the till says of a payment. */
export type StatePanelId =
  | 'pay-sending'
  | 'pay-approved'
  | 'pay-declined'
  | 'pay-unknown'
  | 'pay-cancelled'
  | 'pay-attention'
  | 'pay-offline-ok'
  | 'pay-late-decline';

/** The same, and what is asked of the cashier while there is no answer. */
export type Panel = StatePanelId | 'pay-offline-ask' | 'pay-offline-limit';

/** The bank may say "still at it" this long before the cashier is told that there is no answer yet. */
export const IN_PROGRESS_LIMIT_MS = 10_000;

/** Answers that leave a payment open although it may have been sent. */
function unanswered(lastAnswer: string | null): boolean {
  return lastAnswer !== null && lastAnswer !== 'in-progress';
}

/** True where the goods were gone, with the sale complete, before the bank refused. */
function isLate({ kind, acceptedOffline, state, receiptNumber }: Operation): boolean {
  return kind === 'payment' && acceptedOffline && receiptNumber !== null && (state === 'declined' || state === 'cancelled');
}

export function panelOf(operation: Operation, summary: Summary | null, now: number): StatePanelId {
  if (isLate(operation)) return 'pay-late-decline';
  if (operation.acceptedOffline && isOpen(operation)) return 'pay-offline-ok';
  switch (operation.state) {
    case 'approved':
      return 'pay-approved';
    case 'declined':
      return 'pay-declined';
    case 'cancelled':
      return 'pay-cancelled';
    case 'needs_attention':
      return 'pay-attention';
    case 'unknown':
      return 'pay-unknown';
    case 'saved': {
      const stuck = summary !== null && (summary.bankReachable === false || summary.paused !== null);
      return operation.attempts > 0 || unanswered(operation.lastAnswer) || stuck ? 'pay-unknown' : 'pay-sending';
    }
    case 'sending': {
      if (operation.lastAnswer === 'in-progress') {
        return now - instant(operation.createdAt) >= IN_PROGRESS_LIMIT_MS ? 'pay-unknown' : 'pay-sending';
      }
      // A repeat of an unanswered try: the cashier has been told "no answer yet" and that still holds.
      return unanswered(operation.lastAnswer) ? 'pay-unknown' : 'pay-sending';
    }
  }
}

/**
 * What to show after `before`: once told that there is no answer yet, the cashier is not told
 * "asking the bank" at every further try. Only the bank's word ends it.
 */
export function settledPanel(before: StatePanelId | null, next: StatePanelId): StatePanelId {
  return before === 'pay-unknown' && next === 'pay-sending' ? 'pay-unknown' : next;
}

/** What is asked of the cashier in the place of "no answer yet": only for as long as there is none. */
export function askedPanel(panel: StatePanelId, ask: OfflineAsk | null): Panel {
  if (panel !== 'pay-unknown' || ask === null) return panel;
  return ask.over.length > 0 ? 'pay-offline-limit' : 'pay-offline-ask';
}

/** Still on its way to a final result by itself. */
export function isOpen({ state }: Operation): boolean {
  return state === 'saved' || state === 'sending' || state === 'unknown';
}

export function isFinal(operation: Operation): boolean {
  return operation.state === 'approved' || operation.state === 'declined' || operation.state === 'cancelled';
}
