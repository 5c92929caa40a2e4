// Goods that go before the bank has answered: within the limits, over them, and cash only where it can't be charged twice.

import { fireEvent, waitFor } from '@testing-library/svelte';
import { describe, expect, it } from 'vitest';

import type { MemoryBackend } from '../src/lib/backend-memory';
import type { Operation } from '../src/lib/types';
import { byId, click, managerAllows, maybe, openWindow, readyToCharge, restart, shown, STAFF, textOf } from './window';

/** A payment of 6.20 that the bank has not answered. */
export async function unanswered(change: Partial<Operation> = {}): Promise<{ till: MemoryBackend; key: string }> {
  const till = await openWindow({ bank: 'manual', people: [...STAFF] }, 2);
  await readyToCharge();
  await click('confirm-pay');
  await shown('pay-sending');
  const { key } = till.made[0]!;
  till.settle(key, { state: 'unknown', attempts: 1, lastAnswer: 'time-out', ...change });
  await shown('pay-unknown');
  return { till, key };
}

describe('taking a payment offline', () => {
  it('shows the figures, notes the contact, and completes the sale', async () => {
    const { till, key } = await unanswered();
    await click('take-offline');
    await shown('pay-offline-ask');
    expect(textOf('pay-offline-ask')).toContain('Take it offline? You carry the risk if it is declined. This 6.20; stored 0.00 of 1,000.00.');
    await fireEvent.input(byId('offline-contact'), { target: { value: ' Anna, 555 12 ' } });
    await click('take-offline');
    await shown('pay-offline-ok');
    expect(textOf('pay-offline-ok')).toContain('Saved. Not yet approved by the bank. We keep asking by ourselves.');
    expect(till.pay.counts.takenOffline).toBe(1);
    till.settle(key, { state: 'declined', declineCode: 'insufficient_funds' });
    await shown('pay-late-decline');
    expect((await till.lateDeclines({ withEnded: false, before: null, limit: 9 })).late[0]?.contact).toBe('Anna, 555 12');
  });

  it('is not asked any more once the bank has spoken, and goes back on Wait', async () => {
    const { till, key } = await unanswered();
    await click('take-offline');
    await shown('pay-offline-ask');
    await click('wait');
    await shown('pay-unknown');
    await click('take-offline');
    await shown('pay-offline-ask');
    till.settle(key, { state: 'approved', approvalCode: '8F21K0' });
    await shown('pay-approved');
    expect(maybe('pay-offline-ask')).toBeNull();
  });

  it('offers no cash where the payment may have been sent', async () => {
    const { till, key } = await unanswered();
    await click('take-offline');
    await shown('pay-offline-ask');
    expect(maybe('pay-cash')).toBeNull();
    till.settle(key, { state: 'saved', lastAnswer: 'no-connection' });
    await shown('pay-cash');
    till.settle(key, { state: 'sending' });
    await waitFor(() => expect(maybe('pay-cash')).toBeNull());
  });

  it('takes cash in its place where it was never sent, and cancels it with that', async () => {
    const { till, key } = await unanswered({ state: 'saved', lastAnswer: 'no-connection' });
    await click('take-offline');
    await click('pay-cash');
    await shown('pay-choice');
    expect(byId('tender-card')).toHaveProperty('disabled', true);
    await click('cash-note-2000');
    await click('confirm-pay');
    expect((await shown('change')).textContent).toBe('13.80');
    expect((await till.operation(key)).state).toBe('cancelled');
  });

  it('leaves the cash for the payment once that may be charged', async () => {
    const { till, key } = await unanswered({ state: 'saved', lastAnswer: 'no-connection' });
    await click('take-offline');
    await click('pay-cash');
    await click('cash-exact');
    till.settle(key, { state: 'sending', attempts: 2 });
    await waitFor(() => expect(textOf('confirm-pay')).toBe('The bank is being asked…'));
    expect(byId('confirm-pay')).toHaveProperty('disabled', true);
    till.settle(key, { state: 'unknown', lastAnswer: 'time-out' });
    await shown('pay-unknown');
    expect(maybe('pay-choice')).toBeNull();
  });

  it('says which limit it is over, with its figures, and takes a manager there', async () => {
    const { till } = await unanswered();
    till.pay.limits = { ...till.pay.limits, paymentMax: 500 };
    await click('take-offline');
    await shown('pay-offline-limit');
    expect(textOf('pay-offline-limit')).toContain('Over the offline limit (5.00). Wait for the bank, or ask a manager.');
    expect(textOf('offline-over')).toBe('This 6.20; one payment may be 5.00.');
    expect(maybe('take-offline')).toBeNull();
    await click('manager-pin');
    await click('pin-back');
    await waitFor(() => expect(maybe('pin-entry')).toBeNull());
    expect(till.pay.counts.takenOffline).toBe(0);
    expect(maybe('pay-offline-limit')).not.toBeNull();
    await click('manager-pin');
    await managerAllows();
    await shown('pay-offline-ok');
    expect(till.pay.counts.takenOffline).toBe(1);
  });

  it('is shown again after a restart, until New sale', async () => {
    const { till } = await unanswered();
    await click('take-offline');
    await click('take-offline');
    await shown('pay-offline-ok');
    restart(till);
    await shown('pay-offline-ok');
    await click('new-sale');
    await shown('article-1001');
  });

  it('of a part asks for the rest', async () => {
    const till = await openWindow({ bank: 'manual' }, 2);
    await click('pay');
    await shown('confirm-pay');
    for (const key of ['keypad-3', 'keypad-00']) await click(key);
    await click('card-tok_visa');
    await click('confirm-pay');
    await shown('pay-sending');
    till.settle(till.made[0]!.key, { state: 'unknown', attempts: 1, lastAnswer: 'time-out' });
    await click('take-offline');
    await click('take-offline');
    await click('pay-rest');
    await waitFor(() => expect(textOf('due')).toBe('€3.20'));
    expect(textOf('tender-legs')).toContain('3.00 Taken offline');
    await click('tender-cash');
    await click('cash-exact');
    await click('confirm-pay');
    await shown('change');
  });
});

describe('cancel if not charged', () => {
  it('is a wish, and says "cancelled" only with the bank’s word', async () => {
    const { till, key } = await unanswered();
    await click('cancel-if-not-charged');
    await shown('cancel-wished');
    expect(textOf('cancel-wished')).toContain('It is not cancelled before the bank says so');
    expect(maybe('pay-cancelled')).toBeNull();
    for (const id of ['take-offline', 'cancel-if-not-charged', 'pay-cash']) expect(maybe(id), id).toBeNull();
    till.settle(key, { state: 'cancelled' }, 'answer');
    await shown('pay-cancelled');
    expect(textOf('pay-cancelled')).toContain('Cancelled. The bank confirms no charge. A late copy will be refused.');
  });

  it('may end in an approval', async () => {
    const { till, key } = await unanswered();
    await click('cancel-if-not-charged');
    await shown('cancel-wished');
    till.settle(key, { state: 'approved', approvalCode: '8F21K0' });
    await shown('pay-approved');
  });

  it('of what was never sent ends at once, in its own words', async () => {
    await unanswered({ state: 'saved', lastAnswer: 'no-connection' });
    await click('cancel-if-not-charged');
    await shown('pay-cancelled');
    await waitFor(() => expect(textOf('pay-cancelled')).toContain('Cancelled before it was sent. A late copy will be refused.'));
    await click('back-to-cart');
    await shown('pay');
  });
});
