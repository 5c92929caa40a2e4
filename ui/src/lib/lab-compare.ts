// The till's word beside the gateway's, payment by payment. Pure. What the gateway counts is what was
// really charged.

import type { LabOperation, LabState } from './types';

export type Agreement =
  /** Every approval is one charge, and every charge an approval. */
  | { kind: 'agree' }
  /** Charged, and the till has no answer yet: so it asks again under the same key, and charges nobody anew. */
  | { kind: 'ahead'; codes: string[] }
  /** What must never be. */
  | { kind: 'wrong'; codes: string[] }
  /** The bank is stopped, so its books can't be read. */
  | { kind: 'unread' };

export type Comparison = {
  /** Payments that the till holds as approved, of those shown. */
  approved: number;
  /** What the gateway charged for them; null while it can't be asked. */
  charges: number | null;
  /** What the gateway charged for payments older than those shown. */
  older: number;
  agreement: Agreement;
};

/** What the gateway charged for a payment; null where nobody can say now. */
export function chargesOf(operation: LabOperation, running: boolean): number | null {
  return running ? (operation.gateway?.charges ?? 0) : null;
}

function wrong({ tillState, gateway }: LabOperation): boolean {
  const charges = gateway?.charges ?? 0;
  if (charges > 1) return true;
  // A cancellation may come after the charge: the bank then gives the money back.
  return tillState === 'approved' ? charges !== 1 : tillState === 'declined' && charges > 0;
}

function ahead({ tillState, gateway }: LabOperation): boolean {
  const open = tillState !== 'approved' && tillState !== 'declined' && tillState !== 'cancelled';
  return open && (gateway?.charges ?? 0) > 0;
}

const codes = (operations: LabOperation[]) => operations.map(({ shortCode }) => shortCode);

export function compare(state: LabState): Comparison {
  const payments = state.operations.filter(({ kind }) => kind === 'payment');
  const approved = payments.filter(({ tillState }) => tillState === 'approved').length;
  if (state.gateway === null) return { approved, charges: null, older: 0, agreement: { kind: 'unread' } };
  const charges = payments.reduce((sum, { gateway }) => sum + (gateway?.charges ?? 0), 0);
  const older = state.gateway.charges - charges;
  const bad = payments.filter(wrong);
  const open = payments.filter(ahead);
  const agreement: Agreement =
    bad.length > 0 ? { kind: 'wrong', codes: codes(bad) } : open.length > 0 ? { kind: 'ahead', codes: codes(open) } : { kind: 'agree' };
  return { approved, charges, older, agreement };
}
