// What the tenders of a sale say about it. Nothing is computed: their states are read.

import { isOpen } from './panel';
import type { Operation, Sale, Tender } from './types';

/** The cash that made a completed sale complete, where it was cash. */
export function completedInCash(tenders: Tender[]): Tender | null {
  const last = tenders.findLast(({ state, takenOfflineAt }) => state === 'taken' || state === 'approved' || takenOfflineAt !== null);
  return last?.kind === 'cash' ? last : null;
}

/** Still with the bank, and nobody took the risk of it. */
export function isAwaited({ state, takenOfflineAt }: Tender): boolean {
  return state === 'settling' && takenOfflineAt === null;
}

/** Counts as paid, as far as the sale is concerned. */
export function pays(operation: Operation): boolean {
  const { state, acceptedOffline } = operation;
  return state === 'approved' || (acceptedOffline && isOpen(operation));
}

/** The operation of the newest card tender, which is the one that the cashier waits for. */
export function lastOperation(tenders: Tender[]): Operation | null {
  return tenders.findLast((tender) => tender.operation !== null)?.operation ?? null;
}

/** Something of it is paid, or taken for paid: it is no cart again, and can be given up or put aside. */
export function isPartPaid(sale: Sale | null): boolean {
  if (sale === null || sale.state !== 'paying') return (sale?.paid ?? 0) > 0;
  return sale.paid > 0 || sale.tenders.some(({ state, takenOfflineAt }) => state === 'settling' && takenOfflineAt !== null);
}
