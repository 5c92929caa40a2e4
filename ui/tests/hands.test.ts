// What a hurried hand does: keys and clicks that were meant for something else.

import { waitFor } from '@testing-library/svelte';
import { describe, expect, it, vi } from 'vitest';

import { byId, click, maybe, openWindow, pause, press, readyToCharge, shown, tap, textOf } from './window';

describe('a quantity that is typed', () => {
  it('is set by Enter although a tile or a key was clicked before', async () => {
    await openWindow();
    await click('article-5001');
    await shown('quantity-entry');
    for (const key of ['keypad-0', 'keypad-decimal', 'keypad-6']) await click(key);
    await press('Enter');
    await waitFor(() => expect(textOf('line-1-qty')).toBe('0.6 kg'));
    expect(maybe('line-2')).toBeNull();
  });

  it.each(['article-1001', 'line-1', 'nav-sale'])('is set by Enter with the focus on %s', async (id) => {
    await openWindow({}, 1);
    await click('line-1-qty');
    await press('3');
    const target = byId(id);
    (target instanceof HTMLButtonElement ? target : target.querySelector('button')!).focus();
    await press('Enter');
    await waitFor(() => expect(textOf('line-1-qty')).toBe('3'));
    expect(maybe('line-2')).toBeNull();
  });

  it('is given up by Enter on Back', async () => {
    await openWindow({}, 1);
    await click('line-1-qty');
    await press('3');
    byId('quantity-back').focus();
    await press('Enter');
    await waitFor(() => expect(maybe('quantity-entry')).toBeNull());
    expect(textOf('line-1-qty')).toBe('1');
  });

  it('goes to the entry, and to no search that had the focus', async () => {
    await openWindow();
    byId('search').focus();
    await tap(byId('article-5001'));
    await shown('quantity-entry');
    expect(document.activeElement).toBe(document.body);
  });
});

describe('a double click', () => {
  it('on New sale rings up nothing for the next customer', async () => {
    await openWindow({}, 1);
    await readyToCharge();
    await click('confirm-pay');
    await click('new-sale');
    await tap(await shown('article-1001'), 2);
    await pause(30);
    expect(textOf('cart')).toContain('Nothing rung up yet');
    await pause(500);
    // The series that began on the old panel is still none for the articles.
    await tap(byId('article-1001'), 3);
    await pause(30);
    expect(textOf('cart')).toContain('Nothing rung up yet');
    await tap(byId('article-1001'), 1);
    await tap(byId('article-1001'), 2);
    await waitFor(() => expect(textOf('line-1-qty')).toBe('2'));
  });

  it.each(['back-to-cart', 'pay-back', 'hold-sale'])('on %s rings up nothing', async (id) => {
    const till = await openWindow({ bank: 'manual' }, 1);
    if (id === 'pay-back') await click('pay');
    else {
      await readyToCharge();
      await click('confirm-pay');
      await shown('pay-sending');
      const state = id === 'hold-sale' ? 'unknown' : 'declined';
      till.settle(till.made[0]!.key, { state, attempts: 1 });
    }
    const add = vi.spyOn(till, 'addArticle');
    await click(id);
    await tap(await shown('article-1001'), 1);
    await pause(30);
    expect(add).not.toHaveBeenCalled();
  });
});

describe('a click meant for the panel before', () => {
  it('presses nothing on the one that came up by itself', async () => {
    const till = await openWindow({ bank: 'manual' }, 1);
    await readyToCharge();
    await click('confirm-pay');
    await shown('pay-sending');
    const { key } = till.made[0]!;
    till.settle(key, { state: 'unknown', attempts: 1, lastAnswer: 'time-out' });
    await click('check-now');
    till.settle(key, { state: 'declined', declineCode: 'lost' });
    await tap(await shown('other-card'), 1);
    await pause(30);
    expect(maybe('pay-declined')).not.toBeNull();
    await click('other-card');
    await shown('pay-choice');
  });

  it.each([
    ['pay-unknown', 'check-now', { state: 'unknown', attempts: 1, lastAnswer: 'time-out' }],
    ['pay-attention', 'details', { state: 'needs_attention', attempts: 1, reason: 'bank' }],
  ] as const)('nor does Enter on %s', async (panel, button, change) => {
    const till = await openWindow({ bank: 'manual' }, 1);
    await readyToCharge();
    await click('confirm-pay');
    await shown('pay-sending');
    await pause(600);
    till.settle(till.made[0]!.key, change);
    await shown(panel);
    await waitFor(() => expect(document.activeElement).toBe(byId(button)));
    await press('Enter');
    await pause(30);
    expect(till.counts.retryNow).toBe(0);
    expect(maybe(panel)).not.toBeNull();
  });
});
