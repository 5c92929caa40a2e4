import { fireEvent, waitFor } from '@testing-library/svelte';
import { describe, expect, it, vi } from 'vitest';

import { byId, click, hold, maybe, openWindow, pause, press, readyToCharge, restart, shown, textOf } from './window';

describe('confirm-pay', () => {
  it('makes one operation of twenty clicks', async () => {
    const till = await openWindow({}, 2);
    await readyToCharge();
    const button = byId('confirm-pay');
    for (let n = 0; n < 20; n += 1) button.click();
    await shown('pay-approved');
    expect(till.counts).toMatchObject({ payCard: 1, effects: 1 });
    expect(till.made).toHaveLength(1);
  });

  it('finds its own operation where a click comes late', async () => {
    const till = await openWindow({ bank: 'manual' }, 1);
    const sale = await till.openSale();
    const { tenderId } = await till.beginTender(sale.id);
    const payment = { tenderId, saleId: sale.id, amount: sale.due, card: 'tok_visa' };
    const first = await till.payCard(payment);
    till.settle(first.key, { state: 'approved' });
    expect((await till.payCard(payment)).key).toBe(first.key);
    expect(till.counts.effects).toBe(1);
  });

  it('asks for its tender once, when the dialog opens', async () => {
    const till = await openWindow({}, 1);
    const begin = vi.spyOn(till, 'beginTender');
    await click('pay');
    await click('tender-cash');
    await click('tender-card');
    await click('tender-cash');
    expect(begin).toHaveBeenCalledTimes(1);
  });

  it.each([true, false])('takes Enter held down as one press (repeats marked: %s)', async (marked) => {
    const till = await openWindow({}, 2);
    await readyToCharge();
    await waitFor(() => expect(document.activeElement).toBe(byId('confirm-pay')));
    await hold('Enter', 150, marked);
    await shown('pay-approved');
    expect(till.made).toHaveLength(1);
    // 150 keydowns took longer than the guard: the held key did not press New sale.
    expect(maybe('pay-approved')).not.toBeNull();
  });

  it('is disabled until a card is chosen, and is not where New sale comes up', async () => {
    await openWindow({}, 1);
    await click('pay');
    await shown('confirm-pay');
    expect(byId('confirm-pay')).toHaveProperty('disabled', true);
    await click('card-tok_visa');
    await click('confirm-pay');
    await shown('pay-approved');
    expect((await shown('new-sale')).closest('aside')).toBeNull();
  });
});

describe('a result panel', () => {
  it('takes no Enter in its first half second, and takes it then', async () => {
    await openWindow({}, 1);
    await readyToCharge();
    await click('confirm-pay');
    await shown('pay-approved');
    await waitFor(() => expect(document.activeElement).toBe(byId('new-sale')));
    await press('Enter');
    await pause(50);
    expect(maybe('pay-approved')).not.toBeNull();
    await pause(500);
    await press('Enter');
    await waitFor(() => expect(maybe('pay-approved')).toBeNull());
    await shown('pay');
  });

  it('is read out at once', async () => {
    await openWindow({}, 1);
    await readyToCharge();
    await click('confirm-pay');
    await shown('pay-approved');
    const alerts = [...document.querySelectorAll('[role="alert"]')].map((each) => each.textContent);
    expect(alerts).toContain('Approved 3.40 Approval 8F21K0. Charged once.');
  });
});

describe('the states of a payment', () => {
  async function charged() {
    const till = await openWindow({ bank: 'manual' }, 2);
    await readyToCharge();
    await click('confirm-pay');
    await shown('pay-sending');
    const made = till.made[0];
    if (!made) throw new Error('nothing was made');
    return { till, made };
  }

  it('asks, with nothing to press for three seconds', async () => {
    const { made } = await charged();
    expect(textOf('pay-sending')).toContain(`Asking the bank… 6.20 Payment ${made.shortCode}. Keep the card ready.`);
    expect(textOf('short-code')).toBe(made.shortCode);
    expect(maybe('keep-waiting')).toBeNull();
    await pause(3200);
    await click('keep-waiting');
    await waitFor(() => expect(maybe('keep-waiting')).toBeNull());
    expect(maybe('pay-sending')).not.toBeNull();
  }, 10_000);

  it('offers no cash and no other card while there is no answer', async () => {
    const { till, made } = await charged();
    till.settle(made.key, { state: 'unknown', attempts: 1, lastAnswer: 'time-out' });
    await shown('pay-unknown');
    for (const id of ['pay-cash', 'other-card', 'new-sale', 'back-to-cart']) expect(maybe(id), id).toBeNull();
    for (const id of ['check-now', 'hold-sale']) expect(maybe(id), id).not.toBeNull();
    await click('check-now');
    expect(till.counts.retryNow).toBe(1);
    till.settle(made.key, { state: 'sending', attempts: 2, lastAnswer: null });
    await pause(20);
    expect(maybe('pay-unknown')).not.toBeNull();
    till.settle(made.key, { state: 'approved', approvalCode: '8F21K0' });
    await shown('pay-approved');
  });

  it('says no answer yet where the connection was refused', async () => {
    const { till, made } = await charged();
    till.settle(made.key, { state: 'saved', attempts: 1, lastAnswer: 'no-connection' });
    await shown('pay-unknown');
    expect(byId('sync-chip').dataset['state']).toBe('waiting');
    expect(textOf('sync-chip')).toMatch(/^1 waiting, 6\.20/);
  });

  it('goes on after a decline by another card, each a tender of its own', async () => {
    const { till, made } = await charged();
    till.settle(made.key, { state: 'declined', declineCode: 'lost' });
    await shown('pay-declined');
    expect(textOf('pay-declined')).toContain('The card is reported lost. Ask for another way to pay.');
    await click('other-card');
    await click('card-tok_mastercard');
    await click('confirm-pay');
    await shown('pay-sending');
    expect(till.made).toHaveLength(2);
    expect(till.made[0]?.key).not.toBe(made.key);
  });

  it('goes on after a decline with cash', async () => {
    const { till, made } = await charged();
    till.settle(made.key, { state: 'declined', declineCode: 'expired' });
    await click('pay-cash');
    await click('cash-exact');
    await click('confirm-pay');
    expect(await shown('change')).toHaveProperty('textContent', '0.00');
  });

  it('opens the cart again after a decline', async () => {
    const { till, made } = await charged();
    till.settle(made.key, { state: 'declined', declineCode: 'expired' });
    await click('back-to-cart');
    await shown('pay');
    await click('line-more');
    await waitFor(() => expect(textOf('line-2-qty')).toBe('2'));
  });

  it('shows a cancelled and a stuck payment for what they are', async () => {
    const { till, made } = await charged();
    till.settle(made.key, { state: 'needs_attention', attempts: 1, reason: 'key-reused: amount' });
    await shown('pay-attention');
    expect(textOf('pay-attention')).toContain('Needs a look. Nothing is sent again by itself.');
    expect(maybe('other-card')).toBeNull();
    expect(textOf('sync-chip')).toBe('1 needs a look');
    till.settle(made.key, { state: 'cancelled', attempts: 1 });
    await shown('pay-cancelled');
    expect(maybe('back-to-cart')).not.toBeNull();
  });

  it('puts a sale aside and says when it is complete', async () => {
    const { till, made } = await charged();
    till.settle(made.key, { state: 'unknown', attempts: 1, lastAnswer: 'time-out' });
    await click('hold-sale');
    await shown('held-sales');
    await shown('pay');
    till.settle(made.key, { state: 'approved', approvalCode: '8F21K0' });
    expect((await shown('held-completed')).textContent).toContain('Approved 6.20. The held sale is complete.');
    expect(maybe('pay-approved')).toBeNull();
  });

  it('takes up a held sale in the state of its payment', async () => {
    const { till, made } = await charged();
    till.settle(made.key, { state: 'unknown', attempts: 1, lastAnswer: 'time-out' });
    await click('hold-sale');
    await click(`held-${made.saleId}`);
    await shown('pay-unknown');
  });

  it('opens on the payment where the program was killed in the middle', async () => {
    const { till, made } = await charged();
    till.settle(made.key, { state: 'unknown', attempts: 1, lastAnswer: 'time-out' });
    restart(till);
    await shown('pay-unknown');
    expect(maybe('pay')).toBeNull();
  });

  it('asks for the rest after a part was approved', async () => {
    const till = await openWindow({}, 2);
    await click('pay');
    await shown('confirm-pay');
    for (const key of ['keypad-3', 'keypad-00']) await click(key);
    await click('card-tok_visa');
    await click('confirm-pay');
    await click('pay-rest');
    expect(textOf('due')).toBe('€3.20');
    await click('tender-cash');
    await click('cash-exact');
    await click('confirm-pay');
    await shown('change');
    expect(till.made).toHaveLength(1);
  });
});

describe('cash', () => {
  it('takes a note and shows the change', async () => {
    await openWindow({}, 2);
    await click('pay');
    await click('tender-cash');
    expect(byId('confirm-pay')).toHaveProperty('disabled', true);
    await click('cash-note-2000');
    await click('confirm-pay');
    expect((await shown('change')).textContent).toBe('13.80');
    await click('receipt');
    expect((await shown('receipt-text')).textContent).toContain('Cash');
  });

  it('takes what is typed, in minor units', async () => {
    await openWindow({}, 2);
    await click('pay');
    await click('tender-cash');
    for (const key of ['keypad-1', 'keypad-0', 'keypad-0', 'keypad-0']) await click(key);
    expect(textOf('cash-given')).toBe('€10.00');
    await click('confirm-pay');
    expect((await shown('change')).textContent).toBe('3.80');
  });

  it('is not taken where it is too little', async () => {
    await openWindow({}, 2);
    await click('pay');
    await click('tender-cash');
    await click('keypad-1');
    expect(byId('confirm-pay')).toHaveProperty('disabled', true);
    expect(textOf('confirm-pay')).toBe('Not enough cash yet');
  });
});

describe('a refusal of the till', () => {
  it('is said in words, and the dialog stays', async () => {
    const till = await openWindow({}, 2);
    await click('pay');
    await shown('confirm-pay');
    for (const key of ['keypad-9', 'keypad-00']) await click(key);
    await click('card-tok_visa');
    await click('confirm-pay');
    expect((await shown('command-error')).dataset['code']).toBe('over-due');
    expect(textOf('command-error')).toContain('That is more than what is due.');
    expect(maybe('pay-choice')).not.toBeNull();
    expect(till.made).toHaveLength(0);
  });
});

describe('a till that cannot save', () => {
  it('locks Pay, says why, and opens again', async () => {
    const till = await openWindow({}, 1);
    await readyToCharge();
    till.storageFault = 'No space left on the disk';
    await click('confirm-pay');
    await shown('storage-locked');
    expect(textOf('storage-locked')).toContain('This till cannot save. Payments are locked. No space left on the disk. Open sales are kept.');
    expect(byId('confirm-pay')).toHaveProperty('disabled', true);
    expect(till.made).toHaveLength(0);
    till.storageFault = null;
    await click('storage-try');
    await waitFor(() => expect(maybe('storage-locked')).toBeNull());
    await fireEvent.click(byId('confirm-pay'));
    await shown('pay-approved');
  });
});

describe('a till that cannot save, with a frozen sale in front', () => {
  it('stays locked until a write reaches the disk', async () => {
    const till = await openWindow({ bank: 'manual' }, 1);
    await readyToCharge();
    await click('confirm-pay');
    await shown('pay-sending');
    till.settle(till.made[0]!.key, { state: 'declined', declineCode: 'lost_card' });
    await click('other-card');
    await click('card-tok_visa');
    till.storageFault = 'No space left on the disk';
    await click('confirm-pay');
    await shown('storage-locked');
    // Both go through on a dead disk: they have nothing to write.
    await expect(till.newSale()).resolves.toMatchObject({ state: 'paying' });
    await expect(till.resumeSale((await till.openSale()).id)).resolves.toMatchObject({ state: 'paying' });
    await click('storage-try');
    await pause(20);
    expect(byId('confirm-pay')).toHaveProperty('disabled', true);
    expect(maybe('storage-locked')).not.toBeNull();
    till.storageFault = null;
    await click('storage-try');
    await waitFor(() => expect(maybe('storage-locked')).toBeNull());
    await click('confirm-pay');
    await shown('pay-sending');
    expect(till.made).toHaveLength(2);
  });
});

describe('what the till knows better', () => {
  it('shows the payment that was saved although the click was told otherwise', async () => {
    const till = await openWindow({ bank: 'manual' }, 1);
    await readyToCharge();
    const pay = till.payCard.bind(till);
    vi.spyOn(till, 'payCard').mockImplementationOnce(async (payment) => {
      await pay(payment);
      throw { code: 'storage', message: 'cannot tell whether this was saved', retryable: true };
    });
    await click('confirm-pay');
    await shown('pay-sending');
    expect(till.made).toHaveLength(1);
  });

  it('leaves the dialog for the sale as it is where another had it first', async () => {
    const till = await openWindow({ bank: 'manual' }, 1);
    await readyToCharge();
    const sale = await till.openSale();
    const { tenderId } = await till.beginTender(sale.id);
    await till.payCard({ tenderId, saleId: sale.id, amount: sale.due, card: 'tok_mir' });
    await click('confirm-pay');
    await shown('pay-sending');
    expect((await shown('command-error')).dataset['code']).toBe('sale-frozen');
    expect(till.made).toHaveLength(1);
  });
});
