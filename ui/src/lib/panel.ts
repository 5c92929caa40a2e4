// Which panel tells the truth about a payment. Pure: the same operation, summary and time give
// the same panel in the dialog, after a restart and in a test.

import { instant } from './time';
import type { Operation, Summary } from './types';

export type Panel = 'pay-sending' | 'pay-approved' | 'pay-declined' | 'pay-unknown' | 'pay-cancelled' | 'pay-attention';

/** The bank may say "still at it" this long before the cashier is told that there is no answer yet. */
export const IN_PROGRESS_LIMIT_MS = 10_000;

/** Answers that leave a payment open although it may have been sent. */
function unanswered(lastAnswer: string | null): boolean {
  return lastAnswer !== null && lastAnswer !== 'in-progress';
}

export function panelOf(operation: Operation, summary: Summary | null, now: number): Panel {
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
export function settledPanel(before: Panel | null, next: Panel): Panel {
  return before === 'pay-unknown' && next === 'pay-sending' ? 'pay-unknown' : next;
}

/** True where the bank confirmed nothing because nothing ever left the till. */
export function neverSent(operation: Operation): boolean {
  return operation.attempts === 0;
}

export function isFinal(operation: Operation): boolean {
  return operation.state === 'approved' || operation.state === 'declined' || operation.state === 'cancelled';
}
