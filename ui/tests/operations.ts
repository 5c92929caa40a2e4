import type { Operation, Summary } from '../src/lib/types';

export const START = Date.parse('2026-11-29T10:00:00Z');

export function operation(change: Partial<Operation> = {}): Operation {
  return {
    seq: 1,
    key: '018f0000-0000-7000-8000-000000000001',
    shortCode: 'K7Q2',
    kind: 'payment',
    state: 'saved',
    amount: 2490,
    currency: 'EUR',
    attempts: 0,
    createdAt: '2026-11-29T10:00:00.123456789Z',
    updatedAt: '2026-11-29T10:00:00Z',
    dueAt: null,
    notBefore: null,
    acceptedOffline: false,
    cancelWished: false,
    reason: null,
    saleId: 'sale',
    saleNumber: null,
    receiptNumber: null,
    reference: null,
    bankReference: null,
    approvalCode: null,
    declineCode: null,
    cardBrand: null,
    last4: null,
    lastAnswer: null,
    ...change,
  };
}

export function summary(change: Partial<Summary> = {}): Summary {
  return {
    unsettled: 0,
    sending: 0,
    waiting: 0,
    amounts: [],
    oldestAt: null,
    needsAttention: 0,
    blocked: 0,
    tombstones: 0,
    backlog: null,
    clockGapS: null,
    otherBank: 0,
    paused: null,
    bankReachable: true,
    bankProblem: null,
    lastContactAt: null,
    nextAttemptAt: null,
    chip: 'ok',
    ...change,
  };
}
