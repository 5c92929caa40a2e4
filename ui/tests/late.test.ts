// Declined after the goods were gone: told until somebody has collected it again or written it off.

import { fireEvent, waitFor } from '@testing-library/svelte';
import { describe, expect, it } from 'vitest';

import type { MemoryBackend } from '../src/lib/backend-memory';
import { byId, click, managerAllows, maybe, openWindow, readyToCharge, shown, STAFF, textOf } from './window';

/** A sale of 6.20 that was taken offline and left, with the bank still silent. */
async function takenOffline(): Promise<{ till: MemoryBackend; key: string }> {
  const till = await openWindow({ bank: 'manual', people: [...STAFF] }, 2);
  await readyToCharge();
  await click('confirm-pay');
  await shown('pay-sending');
  const { key } = till.made[0]!;
  till.settle(key, { state: 'unknown', attempts: 1, lastAnswer: 'time-out' });
  await click('take-offline');
  await click('take-offline');
  await click('new-sale');
  await shown('article-1001');
  return { till, key };
}

async function declined() {
  const { till, key } = await takenOffline();
  till.settle(key, { state: 'declined', declineCode: 'insufficient_funds' });
  await shown('pay-late-decline');
  return { till, key };
}

describe('a late decline', () => {
  it('is told on the sale that comes after, with what to do', async () => {
    await declined();
    expect(textOf('pay-late-decline')).toMatch(/^Declined after the sale: 6\.20 Sale 1042, \d\d:\d\d\. Goods already handed over\./);
    expect(byId('pay-late-decline').getAttribute('role')).toBe('alert');
    for (const id of ['collect-again', 'write-off']) expect(maybe(id), id).not.toBeNull();
  });

  it('is collected again by a card, once however often it is clicked', async () => {
    const { till } = await declined();
    await click('collect-again');
    await click('card-tok_mastercard');
    const confirm = byId('collect-confirm');
    await waitFor(() => expect(confirm).toHaveProperty('disabled', false));
    for (let n = 0; n < 20; n += 1) confirm.click();
    await shown('pay-sending');
    expect(till.pay.counts.collected).toBe(1);
    till.settle(till.made[0]!.key, { state: 'approved', attempts: 1, approvalCode: '77AA00' });
    await shown('pay-approved');
    await click('collect-done');
    await waitFor(() => expect(maybe('pay-late-decline')).toBeNull());
  });

  it('stays owed where the second card is declined too', async () => {
    const { till } = await declined();
    await click('collect-again');
    await click('card-tok_lost');
    await waitFor(() => expect(byId('collect-confirm')).toHaveProperty('disabled', false));
    await click('collect-confirm');
    await shown('pay-sending');
    till.settle(till.made[0]!.key, { state: 'declined', declineCode: 'lost' });
    await shown('pay-declined');
    await click('collect-other');
    await waitFor(() => expect(maybe('pay-declined')).toBeNull());
    await shown('collect-cash');
  });

  it('is collected in cash, all of it', async () => {
    await declined();
    await click('collect-again');
    await click('collect-cash');
    await click('keypad-5');
    expect(byId('collect-confirm')).toHaveProperty('disabled', true);
    await click('cash-note-1000');
    await click('collect-confirm');
    expect((await shown('change')).textContent).toBe('3.80');
    await click('collect-done');
    await waitFor(() => expect(maybe('pay-late-decline')).toBeNull());
  });

  it('is written off for a reason, by who may', async () => {
    const { till } = await declined();
    await click('write-off');
    await shown('write-off-confirm');
    expect(byId('write-off-confirm')).toHaveProperty('disabled', true);
    await fireEvent.input(byId('write-off-reason'), { target: { value: 'moved away' } });
    await click('write-off-confirm');
    await click('pin-back');
    await waitFor(() => expect(byId('dialog-error').dataset['code']).toBe('not-allowed'));
    expect(till.pay.counts.writtenOff).toBe(0);
    await click('write-off-confirm');
    await managerAllows();
    await waitFor(() => expect(maybe('pay-late-decline')).toBeNull());
    expect(till.pay.counts.writtenOff).toBe(1);
  });

  it('comes first in Payments, and says there what became of it', async () => {
    const { key } = await declined();
    await click('nav-payments');
    await shown('late-declines');
    await shown('operation-detail');
    expect(textOf('pay-late-decline')).toContain('Declined after the sale: 6.20');
    expect(byId(`operation-${key}`).textContent).toContain('Taken offline');
    await click('write-off');
    await click('reason-0');
    await click('write-off-confirm');
    await managerAllows();
    await waitFor(() => expect(textOf('pay-late-decline')).toContain('Written off: 6.20 Customer not reachable. By Maria.'));
    expect(maybe('late-declines')).toBeNull();
    expect(maybe('collect-again')).toBeNull();
  });

  it('does not interrupt the payment of the next customer', async () => {
    const { till, key } = await takenOffline();
    await click('article-1001');
    await click('pay');
    await shown('pay-choice');
    till.settle(key, { state: 'declined', declineCode: 'lost' });
    await new Promise((done) => setTimeout(done, 50));
    expect(maybe('pay-late-decline')).toBeNull();
    await click('pay-back');
    await shown('pay-late-decline');
  });
});
