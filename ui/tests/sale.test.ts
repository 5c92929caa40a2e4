import { fireEvent, waitFor } from '@testing-library/svelte';
import { describe, expect, it, vi } from 'vitest';

import { byId, click, hold, maybe, openWindow, pause, press, shown, tap, textOf } from './window';

describe('the cart', () => {
  it('counts every tap of ten quick ones', async () => {
    await openWindow();
    const tile = byId('article-1001');
    for (let n = 0; n < 10; n += 1) tile.click();
    await waitFor(() => expect(textOf('line-1-qty')).toBe('10'));
    expect(textOf('total')).toBe('€22.00');
  });

  it('counts every press of + while the till is slow', async () => {
    const till = await openWindow({}, 1);
    const set = till.setQuantity.bind(till);
    vi.spyOn(till, 'setQuantity').mockImplementation(async (line, quantity) => {
      await new Promise((done) => setTimeout(done, 30));
      return set(line, quantity);
    });
    for (let n = 0; n < 3; n += 1) await press('+');
    await waitFor(() => expect(textOf('line-1-qty')).toBe('4'));
  });

  it('counts up and down, and takes out the selected line', async () => {
    await openWindow({}, 2);
    await click('line-more');
    await click('line-more');
    await waitFor(() => expect(textOf('line-2-qty')).toBe('3'));
    await click('line-less');
    await waitFor(() => expect(textOf('line-2-qty')).toBe('2'));
    await click('line-remove');
    await waitFor(() => expect(maybe('line-2')).toBeNull());
    expect(textOf('total')).toBe('€3.40');
  });

  it('does the same by the keys + − and Del', async () => {
    await openWindow({}, 2);
    await press('+');
    await waitFor(() => expect(textOf('line-2-qty')).toBe('2'));
    await press('-');
    await waitFor(() => expect(textOf('line-2-qty')).toBe('1'));
    await press('Delete');
    await waitFor(() => expect(maybe('line-2')).toBeNull());
  });

  it('takes a quantity from the keypad, and no Pay meanwhile', async () => {
    await openWindow({}, 2);
    await click('line-1-qty');
    await click('keypad-1');
    await click('keypad-2');
    expect(byId('pay')).toHaveProperty('disabled', true);
    await click('quantity-set');
    await waitFor(() => expect(textOf('line-1-qty')).toBe('12'));
    expect(textOf('total')).toBe('€43.60');
  });

  it('asks for the weight of what is weighed', async () => {
    await openWindow();
    await click('article-5001');
    await shown('quantity-entry');
    for (const key of ['0', '.', '6', '4', '5']) await press(key);
    expect(textOf('quantity-entry')).toContain('0.645');
    // Nothing is counted for it before it is weighed.
    expect(maybe('line-1')).toBeNull();
    expect(textOf('weighing')).toBe('Bananas');
    await press('Enter');
    await waitFor(() => expect(textOf('line-1-qty')).toBe('0.645 kg'));
    expect(textOf('total')).toBe('€1.28');
  });

  it('has no weighed article whose weight was not given', async () => {
    const till = await openWindow();
    await click('article-5001');
    await shown('quantity-entry');
    await press('Enter');
    expect(maybe('quantity-entry')).not.toBeNull();
    await click('quantity-back');
    await waitFor(() => expect(maybe('quantity-entry')).toBeNull());
    expect((await till.openSale()).lines).toHaveLength(0);
  });

  it.each(['Delete', '+', 'F12'])('takes %s held down as one press', async (key) => {
    await openWindow({}, 3);
    await hold(key, 8, true);
    await pause(100);
    if (key === 'Delete') expect([maybe('line-2') !== null, maybe('line-3')]).toEqual([true, null]);
    else if (key === '+') expect(textOf('line-3-qty')).toBe('2');
    else expect(maybe('payments')).not.toBeNull();
  });

  it('is empty in words, with nothing to pay', async () => {
    await openWindow();
    expect(textOf('cart')).toContain('Nothing rung up yet');
    expect(byId('pay')).toHaveProperty('disabled', true);
  });

  it('is cleared only after a question', async () => {
    await openWindow({}, 2);
    await click('clear-sale');
    await click('clear-no');
    expect(maybe('line-2')).not.toBeNull();
    await click('clear-sale');
    await click('clear-yes');
    await waitFor(() => expect(maybe('line-1')).toBeNull());
  });
});

describe('the catalogue', () => {
  it('finds by words and says so where there is nothing', async () => {
    await openWindow();
    await fireEvent.input(byId('search'), { target: { value: 'croiss alm' } });
    await waitFor(() => expect(maybe('article-1001')).toBeNull());
    await shown('article-3002');
    await fireEvent.input(byId('search'), { target: { value: 'caviar' } });
    expect((await shown('search-empty')).textContent).toContain('Nothing found for “caviar”');
  });

  it('rings up the only article found on Enter, and is ready for the next', async () => {
    await openWindow();
    byId('search').focus();
    await fireEvent.input(byId('search'), { target: { value: '3002' } });
    await press('Enter');
    await waitFor(() => expect(textOf('line-1')).toContain('Almond croissant'));
    await waitFor(() => expect(byId('search')).toHaveProperty('value', ''));
  });

  it('rings up one on Enter three times', async () => {
    const till = await openWindow();
    byId('search').focus();
    await fireEvent.input(byId('search'), { target: { value: '3002' } });
    for (let n = 0; n < 3; n += 1) await press('Enter');
    await waitFor(() => expect(maybe('line-1')).not.toBeNull());
    await pause(50);
    expect((await till.openSale()).lines.map(({ quantity }) => quantity)).toEqual(['1']);
  });

  it('says that it could not be read, not that it is empty', async () => {
    const till = await openWindow();
    vi.spyOn(till, 'articles').mockRejectedValueOnce({ code: 'internal', message: 'torn', retryable: true });
    await click('category-bakery');
    await shown('articles-failed');
    expect(textOf('articles')).not.toContain('No articles here yet');
    await tap(byId('articles-failed').querySelector('button')!);
    await shown('article-3001');
  });

  it('is searched by the key of / on a Russian layout', async () => {
    await openWindow();
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '.', code: 'Slash', bubbles: true, cancelable: true }));
    await waitFor(() => expect(document.activeElement).toBe(byId('search')));
  });

  it('rings up nothing on Enter where several are found', async () => {
    await openWindow();
    byId('search').focus();
    await fireEvent.input(byId('search'), { target: { value: 'croissant' } });
    await press('Enter');
    await waitFor(() => expect(document.activeElement).toBe(byId('article-3001')));
    expect(maybe('line-1')).toBeNull();
  });

  it('narrows down by category', async () => {
    await openWindow();
    await click('category-bakery');
    await waitFor(() => expect(maybe('article-1001')).toBeNull());
    expect(byId('category-bakery').getAttribute('aria-pressed')).toBe('true');
    await click('category-all');
    await shown('article-1001');
  });

  it('is searched by / and left by Esc', async () => {
    await openWindow();
    await press('/');
    await waitFor(() => expect(document.activeElement).toBe(byId('search')));
    await press('Escape');
    expect(document.activeElement).not.toBe(byId('search'));
  });
});

describe('the keys', () => {
  it('pay a whole sale: F10, Enter', async () => {
    await openWindow({}, 1);
    await press('F10');
    await waitFor(() => expect(document.activeElement).toBe(byId('confirm-pay')));
    await press('Enter');
    await shown('change');
  });

  it('open Pay by F9 and leave it by Esc', async () => {
    await openWindow({}, 1);
    await press('F9');
    await shown('pay-choice');
    await press('Escape');
    await waitFor(() => expect(maybe('pay-choice')).toBeNull());
  });

  it('open Payments by F12', async () => {
    await openWindow();
    await press('F12');
    await shown('payments-empty');
    await press('Escape');
    await shown('search');
  });
});

describe('the top bar', () => {
  it('switches language and keeps it', async () => {
    await openWindow({}, 1);
    await click('look-menu');
    await click('language-ru');
    await press('Escape');
    await waitFor(() => expect(textOf('pay')).toBe('Оплата'));
    expect(document.documentElement.lang).toBe('ru');
    expect(localStorage.getItem('kassa.language')).toBe('ru');
    expect(textOf('total')).toMatch(/3,40/);
  });

  it('switches the theme and keeps it', async () => {
    await openWindow();
    await click('look-menu');
    await click('theme-dark');
    await waitFor(() => expect(document.documentElement.dataset['theme']).toBe('dark'));
    expect(localStorage.getItem('kassa.theme')).toBe('dark');
  });

  it('opens Payments from the chip, and has no screens of later', async () => {
    await openWindow();
    expect(byId('sync-chip').dataset['state']).toBe('ok');
    await click('sync-chip');
    await shown('payments');
    for (const id of ['nav-sales', 'nav-shift', 'nav-settings']) expect(maybe(id)).toBeNull();
  });
});
