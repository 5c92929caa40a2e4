import { waitFor } from '@testing-library/svelte';
import { describe, expect, it, vi } from 'vitest';

import type { MemoryBackend } from '../src/lib/backend-memory';
import { byId, click, maybe, openWindow, shown, textOf } from './window';

async function pay(till: MemoryBackend): Promise<string> {
  await till.newSale();
  await till.addArticle('1001', null);
  const sale = await till.openSale();
  const { tenderId } = await till.beginTender(sale.id);
  const { key } = await till.payCard({ tenderId, saleId: sale.id, amount: sale.due, card: 'tok_visa' });
  return key;
}

describe('Payments', () => {
  it('shows each with its state, and follows it', async () => {
    const till = await openWindow({ bank: 'manual' });
    const key = await pay(till);
    await click('nav-payments');
    expect((await shown(`operation-${key}`)).dataset['state']).toBe('saved');
    till.settle(key, { state: 'approved', attempts: 1, approvalCode: '8F21K0' });
    await waitFor(() => expect(byId(`operation-${key}`).dataset['state']).toBe('approved'));
  });

  it('shows what happened, with the key, and asks again', async () => {
    const till = await openWindow({ bank: 'manual' });
    const key = await pay(till);
    till.settle(key, { state: 'unknown', attempts: 1, lastAnswer: 'time-out' }, 'no-answer', 'POST /v1/payments · time-out');
    await click('nav-payments');
    await click(`operation-${key}`);
    await waitFor(() => expect(textOf('operation-timeline')).toContain('No answer Try 1 POST /v1/payments · no answer in time'.replace(' Try', 'Try')));
    expect(textOf('operation-key')).toBe(key);
    await click('retry-now');
    expect(till.counts.retryNow).toBe(1);
    till.settle(key, { state: 'declined', declineCode: 'lost' }, 'answer', '402 · declined');
    await waitFor(() => expect(maybe('retry-now')).toBeNull());
    expect(textOf('operation-timeline')).toContain('402 · declined');
  });

  it('filters by state', async () => {
    const till = await openWindow({ bank: 'manual' });
    const first = await pay(till);
    till.settle(first, { state: 'approved' });
    const second = await pay(till);
    till.settle(second, { state: 'needs_attention', attempts: 1, reason: 'key-reused: amount' });
    await click('nav-payments');
    await click('filter-needs_attention');
    await shown(`operation-${second}`);
    expect(maybe(`operation-${first}`)).toBeNull();
    await click('filter-cancelled');
    await waitFor(() => expect(textOf('payments')).toContain('Nothing in this state'));
  });

  it('keeps what is read in sight when it leaves the filter', async () => {
    const till = await openWindow({ bank: 'manual' });
    const key = await pay(till);
    till.settle(key, { state: 'unknown', attempts: 1, lastAnswer: 'time-out' });
    await click('nav-payments');
    await click('filter-unknown');
    await click(`operation-${key}`);
    await shown('operation-detail');
    till.settle(key, { state: 'approved', attempts: 2 });
    await waitFor(() => expect(byId('operation-detail').dataset['state']).toBe('approved'));
  });

  it('says where a copy was refused, and for a while where it was made', async () => {
    const till = await openWindow({ bank: 'manual' });
    const key = await pay(till);
    await click('nav-payments');
    await click(`operation-${key}`);
    const copy = (await shown('operation-detail')).querySelector<HTMLElement>('.copy')!;
    copy.click();
    await waitFor(() => expect(textOf('operation-detail')).toContain('Not copied.'));
    vi.stubGlobal('navigator', Object.create(navigator, { clipboard: { value: { writeText: async () => {} } } }));
    copy.click();
    await waitFor(() => expect(copy.querySelector('.lucide-check')).not.toBeNull());
    await waitFor(() => expect(copy.querySelector('.lucide-check')).toBeNull());
    vi.unstubAllGlobals();
  });

  it('pages through many, and draws only what is in sight', async () => {
    const till = await openWindow({ bank: 'manual' });
    const keys: string[] = [];
    for (let n = 0; n < 130; n += 1) {
      const key = await pay(till);
      till.settle(key, { state: 'approved', attempts: 1 });
      keys.push(key);
    }
    await click('nav-payments');
    await shown(`operation-${keys[129]}`);
    expect(maybe(`operation-${keys[0]}`)).toBeNull();
    await click('load-more');
    await waitFor(() => expect(maybe('load-more')).toBeNull());
    expect(document.querySelectorAll('[data-testid^="operation-"][data-state]').length).toBeLessThan(50);
    const box = byId('list-box');
    box.scrollTop = 130 * 52;
    box.dispatchEvent(new Event('scroll'));
    await shown(`operation-${keys[0]}`);
    expect(maybe(`operation-${keys[129]}`)).toBeNull();
  });

  it('puts a new one on top, and keeps what was paged to', async () => {
    const till = await openWindow({ bank: 'manual' });
    const first = await pay(till);
    till.settle(first, { state: 'approved', attempts: 1 });
    await click('nav-payments');
    await shown(`operation-${first}`);
    const second = await pay(till);
    till.settle(second, { state: 'unknown', attempts: 1, lastAnswer: 'time-out' });
    await shown(`operation-${second}`);
    const rows = [...document.querySelectorAll<HTMLElement>('[data-testid^="operation-"][data-state]')].map((row) => row.dataset['testid']);
    expect(rows).toEqual([`operation-${second}`, `operation-${first}`]);
  });

  it('cancels, as a wish, what was perhaps sent', async () => {
    const till = await openWindow({ bank: 'manual' });
    const key = await pay(till);
    till.settle(key, { state: 'unknown', attempts: 1, lastAnswer: 'time-out' });
    await click('nav-payments');
    await click(`operation-${key}`);
    await click('cancel-if-not-charged');
    await shown('cancel-wished');
    expect(byId(`operation-${key}`).dataset['state']).toBe('unknown');
    expect(maybe('cancel-if-not-charged')).toBeNull();
    await waitFor(() => expect(textOf('operation-timeline')).toContain('Cancelling asked'));
  });

  it('says what to do about one that needs a look', async () => {
    const till = await openWindow({ bank: 'manual' });
    const key = await pay(till);
    till.settle(key, { state: 'needs_attention', attempts: 1, reason: 'key-reused: amount' });
    await click('nav-payments');
    await click(`operation-${key}`);
    expect((await shown('what-to-do')).textContent).toContain('Do not charge again');
    await click('manager-pin');
    await click('ask-again');
    expect(till.counts.retryNow).toBe(1);
  });
});
