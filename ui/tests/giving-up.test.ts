// A sale in parts: what is paid, what is due, and giving it up.

import { waitFor } from '@testing-library/svelte';
import { describe, expect, it } from 'vitest';

import { byId, click, maybe, openWindow, pause, shown, textOf } from './window';

/** A sale of 6.20 of which 3.00 are paid in cash. */
async function partInCash() {
  const till = await openWindow({ bank: 'manual' }, 2);
  await click('pay');
  await click('tender-cash');
  for (const key of ['keypad-3', 'keypad-00']) await click(key);
  expect(byId('confirm-pay')).toHaveProperty('disabled', true);
  await click('cash-part');
  expect(textOf('confirm-pay')).toBe('Take €3.00 as a part');
  await click('confirm-pay');
  await waitFor(() => expect(textOf('due')).toBe('€3.20'));
  return till;
}

describe('cash that is too little', () => {
  it('is a part payment only where that was said, and the rest is asked for', async () => {
    await partInCash();
    expect(textOf('tender-legs')).toContain('Cash 3.00 Paid');
    expect(maybe('pay-back')).toBeNull();
  });

  it('is no part any more once another amount is typed', async () => {
    await openWindow({}, 2);
    await click('pay');
    await click('tender-cash');
    await click('keypad-3');
    await click('cash-part');
    await click('keypad-0');
    expect(byId('confirm-pay')).toHaveProperty('disabled', true);
  });
});

describe('a sale in parts', () => {
  it('keeps what is paid where the next card is declined', async () => {
    const till = await partInCash();
    await click('card-tok_lost');
    await click('confirm-pay');
    await shown('pay-sending');
    till.settle(till.made[0]!.key, { state: 'declined', declineCode: 'lost', attempts: 1 });
    await shown('pay-declined');
    await waitFor(() => expect(textOf('tender-legs')).toContain('Declined, not charged'));
    expect(textOf('tender-legs')).toContain('Cash 3.00 Paid');
    expect(maybe('back-to-cart')).toBeNull();
    await click('other-card');
    await waitFor(() => expect(textOf('due')).toBe('€3.20'));
  });

  it('is given up with what goes back, once', async () => {
    const till = await partInCash();
    await click('give-up');
    await waitFor(() => expect(textOf('void-figures')).toBe('Out of the drawer€3.00'));
    const confirm = byId('void-confirm');
    for (let n = 0; n < 10; n += 1) confirm.click();
    expect((await shown('hand-over')).textContent).toBe('3.00');
    expect(till.pay.counts.voided).toBe(1);
    await click('void-done');
    await shown('article-1001');
    expect(textOf('cart')).toContain('Nothing rung up yet');
  });

  it('is kept where giving up was thought better of', async () => {
    const till = await partInCash();
    await click('give-up');
    await click('void-back');
    await pause(30);
    expect(till.pay.counts.voided).toBe(0);
    expect(maybe('pay-choice')).not.toBeNull();
  });
});

describe('a receipt', () => {
  it('is printed, then as a copy, and says why where it is not', async () => {
    const till = await openWindow({}, 1);
    await click('pay');
    await click('tender-cash');
    await click('cash-exact');
    await click('confirm-pay');
    await click('receipt');
    await shown('receipt-text');
    till.printerFault = 'printer-unreachable';
    await waitFor(() => expect(byId('print')).toHaveProperty('disabled', false));
    await click('print');
    await waitFor(() => expect(textOf('print-outcome')).toMatch(/^The printer cannot be reached\. .*The sale is not touched\.$/));
    till.printerFault = null;
    expect(textOf('print')).toBe('Print again');
    await click('print');
    await waitFor(() => expect(textOf('print-outcome')).toBe('Printed.'));
    await click('print');
    await waitFor(() => expect(textOf('print-outcome')).toBe('Printed, marked COPY 1.'));
  });
});
