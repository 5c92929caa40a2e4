// What the window shows agrees with the till: after a restart, while answers overtake each other, and
// without asking without end.

import { render, waitFor } from '@testing-library/svelte';
import { describe, expect, it, vi } from 'vitest';

import App from '../src/App.svelte';
import { MemoryBackend } from '../src/lib/backend-memory';
import { byId, click, gate, maybe, openWindow, pause, press, readyToCharge, restart, shown, textOf } from './window';

describe('asking the till how the sale stands', () => {
  it('ends: three articles and a payment are a few questions', async () => {
    const till = await openWindow();
    for (const sku of ['1002', '3001', '4002']) await click(`article-${sku}`);
    await waitFor(() => expect(textOf('total')).toBe('€12.70'));
    await readyToCharge();
    await click('confirm-pay');
    await shown('pay-approved');
    await pause(200);
    const asked = till.counts.openSale;
    expect(asked).toBeLessThan(20);
    await pause(300);
    expect(till.counts.openSale).toBe(asked);
  });

  it('is done once more for whatever changed meanwhile, not once for each change', async () => {
    const till = await openWindow({}, 1);
    const answers = gate();
    const ask = till.openSale.bind(till);
    const asked = vi.spyOn(till, 'openSale').mockImplementation(async () => {
      await answers.passed;
      return ask();
    });
    const { id } = await ask();
    for (let n = 0; n < 20; n += 1) till.tellSale(id);
    await pause(20);
    answers.open();
    await pause(50);
    expect(asked).toHaveBeenCalledTimes(2);
  });

  it('never puts an older answer over a newer one', async () => {
    const till = await openWindow();
    const answers = gate();
    const ask = till.openSale.bind(till);
    vi.spyOn(till, 'openSale').mockImplementationOnce(async () => {
      const old = await ask();
      await answers.passed;
      return old;
    });
    till.tellSale((await ask()).id);
    await pause(10);
    await click('article-1001');
    await waitFor(() => expect(textOf('total')).toBe('€2.20'));
    answers.open();
    await pause(50);
    expect(textOf('total')).toBe('€2.20');
  });
});

describe('an approved payment', () => {
  it('offers neither the rest nor a new sale until the sale itself has it in', async () => {
    const till = await openWindow({ bank: 'manual' }, 1);
    await readyToCharge();
    await click('confirm-pay');
    await shown('pay-sending');
    const answers = gate();
    const ask = till.openSale.bind(till);
    vi.spyOn(till, 'openSale').mockImplementation(async () => {
      await answers.passed;
      return ask();
    });
    till.settle(till.made[0]!.key, { state: 'approved', attempts: 1 });
    await shown('pay-approved');
    expect(maybe('pay-rest')).toBeNull();
    expect(maybe('new-sale')).toBeNull();
    answers.open();
    await shown('new-sale');
    expect(maybe('pay-rest')).toBeNull();
  });
});

describe('a start after the program was ended', () => {
  it('says that the customer has paid by card, until New sale', async () => {
    const till = await openWindow({ bank: 'manual' }, 2);
    await readyToCharge();
    await click('confirm-pay');
    await shown('pay-sending');
    const made = till.made[0]!;
    till.settle(made.key, { state: 'approved', attempts: 1, approvalCode: '8F21K0' });
    restart(till);
    await shown('pay-approved');
    expect(textOf('pay-approved')).toContain('Approved 6.20');
    expect(maybe('article-1001')).toBeNull();
    await click('receipt');
    expect((await shown('receipt-text')).textContent).toContain('1042');
    await click('receipt-close');
    await click('new-sale');
    await shown('article-1001');
    expect(textOf('cart')).toContain('Nothing rung up yet');
    restart(till);
    await shown('article-1001');
  });

  it('shows the change again that is to be given', async () => {
    const till = await openWindow({}, 2);
    await click('pay');
    await click('tender-cash');
    await click('cash-note-2000');
    await click('confirm-pay');
    await shown('change');
    restart(till);
    expect((await shown('change')).textContent).toBe('13.80');
    expect(textOf('pay-taken')).toContain('Paid in cash 6.20');
    await click('new-sale');
    await shown('article-1001');
  });
});

describe('the amount that is charged', () => {
  it('has in it the article tapped just before Pay', async () => {
    const till = await openWindow({ bank: 'manual' }, 1);
    const add = till.addArticle.bind(till);
    vi.spyOn(till, 'addArticle').mockImplementation(async (sku, quantity) => {
      await pause(60);
      return add(sku, quantity);
    });
    byId('article-1001').click();
    await click('pay');
    await waitFor(() => expect(textOf('due')).toBe('€5.60'));
    await click('card-tok_visa');
    await waitFor(() => expect(textOf('confirm-pay')).toBe('Charge €5.60'));
    await click('confirm-pay');
    await shown('pay-sending');
    expect(till.made.map(({ amount }) => amount)).toEqual([560]);
  });

  it('is chosen anew where the sale changed under the dialog', async () => {
    const till = await openWindow({ bank: 'manual' }, 1);
    await readyToCharge();
    await till.addArticle('1001', null);
    await waitFor(() => expect(textOf('due')).toBe('€5.60'));
    expect(byId('confirm-pay')).toHaveProperty('disabled', true);
    await click('card-tok_visa');
    await press('Enter');
    await shown('pay-sending');
    expect(till.made.map(({ amount }) => amount)).toEqual([560]);
  });
});

describe('the words of a wait', () => {
  it('say when, and "asking" only while the bank is asked', async () => {
    const till = await openWindow({ bank: 'manual' }, 1);
    await readyToCharge();
    await click('confirm-pay');
    await shown('pay-sending');
    const { key } = till.made[0]!;
    const past = new Date(Date.now() - 1000).toISOString();
    till.settle(key, { state: 'unknown', attempts: 1, lastAnswer: 'rate-limited', dueAt: past, notBefore: past });
    await shown('pay-unknown');
    expect(textOf('next-try')).toBe('Asking again soon');
    const later = new Date(Date.now() + 30_000).toISOString();
    till.settle(key, { dueAt: past, notBefore: later });
    await waitFor(() => expect(textOf('next-try')).toMatch(/^The bank asks us to wait (30|29|28) s$/));
    till.settle(key, { state: 'sending', attempts: 2 });
    await waitFor(() => expect(textOf('next-try')).toBe('Asking again now'));
  });

  it('are neutral while the tender is being begun', async () => {
    const till = await openWindow({}, 1);
    const answer = gate();
    const begin = till.beginTender.bind(till);
    vi.spyOn(till, 'beginTender').mockImplementation(async (sale) => {
      await answer.passed;
      return begin(sale);
    });
    await click('pay');
    await click('card-tok_visa');
    expect(textOf('confirm-pay')).toBe('One moment…');
    answer.open();
    await waitFor(() => expect(textOf('confirm-pay')).toBe('Charge €3.40'));
  });
});

describe('a start', () => {
  it('that cannot read its sale says so, and can be tried again', async () => {
    const till = new MemoryBackend();
    vi.spyOn(till, 'openSale').mockRejectedValueOnce({ code: 'internal', message: 'torn', retryable: true });
    render(App, { backend: till });
    const failed = await shown('start-failed');
    failed.querySelector('button')!.click();
    await shown('article-1001');
  });
});
