import { describe, expect, it } from 'vitest';

import { chargesOf, compare } from '../src/lib/lab-compare';
import { paymentOf, phaseAfter } from '../src/lib/tour-steps';
import type { LabOperation, LabState } from '../src/lib/types';

function of(code: string, tillState: LabOperation['tillState'], charges: number | null, more: Partial<LabOperation> = {}): LabOperation {
  return {
    key: `key-${code}`,
    shortCode: code,
    kind: 'payment',
    amount: 2490,
    currency: 'EUR',
    tillState,
    tillAttempts: 1,
    bank: charges === null ? null : { state: 'processing', gatewayAttempts: 1 },
    gateway: charges === null ? null : { key: `gw-${code}`, requests: 1, charges, refunds: 0 },
    ...more,
  };
}

function books(operations: LabOperation[], charges = operations.reduce((sum, { gateway }) => sum + (gateway?.charges ?? 0), 0)): LabState {
  const sums = { charges, refunds: 0, charged: [], refunded: [] };
  return { running: true, faults: [], bank: { ...sums, balanced: true }, gateway: { ...sums, requests: charges, distinctKeys: charges }, operations };
}

describe('the till beside the gateway', () => {
  it('agrees where every approval is one charge', () => {
    const both = compare(books([of('A', 'approved', 1), of('B', 'declined', 0), of('C', 'saved', null)]));
    expect(both).toEqual({ approved: 1, charges: 1, older: 0, agreement: { kind: 'agree' } });
  });

  it('names what is charged and not answered yet, which is no mistake', () => {
    const both = compare(books([of('A', 'unknown', 1), of('B', 'approved', 1)]));
    expect(both).toMatchObject({ approved: 1, charges: 2, agreement: { kind: 'ahead', codes: ['A'] } });
  });

  it.each([
    ['charged twice', of('A', 'approved', 2)],
    ['charged twice and still open', of('A', 'unknown', 2)],
    ['approved and not charged', of('A', 'approved', 0)],
    ['declined and charged', of('A', 'declined', 1)],
  ])('says that it must never be: %s', (_, operation) => {
    expect(compare(books([operation, of('B', 'unknown', 1)])).agreement).toEqual({ kind: 'wrong', codes: ['A'] });
  });

  it('counts no refund as a payment, and names charges older than what is shown', () => {
    const refund = of('R', 'approved', 0, { kind: 'refund' });
    expect(compare(books([refund, of('A', 'approved', 1)], 5))).toMatchObject({ approved: 1, charges: 1, older: 4, agreement: { kind: 'agree' } });
  });

  it('says nothing of charges while the bank is stopped', () => {
    const stopped: LabState = { running: false, faults: [], bank: null, gateway: null, operations: [of('A', 'approved', null)] };
    expect(compare(stopped)).toEqual({ approved: 1, charges: null, older: 0, agreement: { kind: 'unread' } });
    expect(chargesOf(of('A', 'approved', null), false)).toBeNull();
    expect(chargesOf(of('A', 'saved', null), true)).toBe(0);
  });
});

describe('a step of the tour', () => {
  const before = new Set(['key-OLD']);

  it('takes the first payment made since it began', () => {
    const state = books([of('NEW2', 'saved', null), of('NEW1', 'saved', null), of('OLD', 'unknown', 1)]);
    expect(paymentOf(state, before)?.shortCode).toBe('NEW1');
    expect(paymentOf(books([of('OLD', 'unknown', 1)]), before)).toBeNull();
    expect(paymentOf(books([of('R', 'saved', null, { kind: 'refund' })]), before)).toBeNull();
  });

  it('goes on by what happened, and never back', () => {
    expect(phaseAfter('pay', null, 'garbage')).toBe('pay');
    expect(phaseAfter('pay', of('A', 'sending', null), 'garbage')).toBe('sent');
    expect(phaseAfter('sent', of('A', 'unknown', 1), 'garbage')).toBe('open');
    expect(phaseAfter('open', of('A', 'sending', 1, { tillAttempts: 1 }), 'garbage')).toBe('open');
    expect(phaseAfter('settling', of('A', 'unknown', 1), 'garbage')).toBe('settling');
    expect(phaseAfter('settling', of('A', 'approved', 1), 'garbage')).toBe('done');
    expect(phaseAfter('done', of('A', 'unknown', 1), 'garbage')).toBe('done');
  });

  it('sees a refused connection, and a bank that is still at it', () => {
    expect(phaseAfter('pay', of('A', 'saved', null, { tillAttempts: 0 }), 'garbage')).toBe('sent');
    expect(phaseAfter('pay', of('A', 'saved', null, { tillAttempts: 0 }), 'stopped')).toBe('open');
    expect(phaseAfter('sent', of('A', 'sending', 0), 'gateway_slow')).toBe('open');
    expect(phaseAfter('pay', of('A', 'declined', 0), 'garbage')).toBe('done');
  });
});
