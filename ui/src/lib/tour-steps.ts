// The guided tour of five faults: what each step waits for. Pure: it reads the books and says how far
// the step is, so that the tour goes on by what really happened and never by a clock.

import type { FaultId } from './lab.svelte';
import type { LabOperation, LabState } from './types';

export type StepId = 'lost' | 'away' | 'page' | 'slow' | 'later';
export type Step = { id: StepId; fault: FaultId };

export const steps: readonly Step[] = [
  { id: 'lost', fault: 'drop_after_charge' },
  { id: 'away', fault: 'stopped' },
  { id: 'page', fault: 'garbage' },
  { id: 'slow', fault: 'gateway_slow' },
  { id: 'later', fault: 'unavailable' },
];

/**
 * `pay`: a payment is to be made; `sent`: it is under way; `open`: it has met the fault, and the till
 * has no answer; `settling`: the fault was ended; `done`: the bank's word is here.
 */
export type Phase = 'pay' | 'sent' | 'open' | 'settling' | 'done';

export const isFinal = ({ tillState }: LabOperation) => tillState === 'approved' || tillState === 'declined' || tillState === 'cancelled';

/** True where the payment has met the fault: it was tried, and the bank's word is not here. */
function met({ tillState, tillAttempts, bank }: LabOperation, fault: FaultId): boolean {
  if (tillState === 'unknown' || tillState === 'needs_attention') return true;
  if (tillState === 'saved') return tillAttempts > 0 || fault === 'stopped';
  // Slow is no fault of the answer: the bank says that it is at it, and that is all there is to see.
  return tillState === 'sending' && (fault === 'gateway_slow' ? bank?.state === 'processing' : tillAttempts > 1);
}

/** The payment of this step: the first one made since it began. */
export function paymentOf(state: LabState, before: ReadonlySet<string>): LabOperation | null {
  return state.operations.findLast(({ kind, key }) => kind === 'payment' && !before.has(key)) ?? null;
}

/** How far the step is now. It never goes back: who was told "no answer yet" is told the end next. */
export function phaseAfter(phase: Phase, payment: LabOperation | null, fault: FaultId): Phase {
  if (payment === null || phase === 'done') return phase;
  if (isFinal(payment)) return 'done';
  if (phase === 'settling' || phase === 'open') return phase;
  return met(payment, fault) ? 'open' : 'sent';
}
