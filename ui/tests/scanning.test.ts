// The scanner in the window: a burst of keys, wherever the focus is.

import { waitFor } from '@testing-library/svelte';
import { describe, expect, it, vi } from 'vitest';

import { byId, click, maybe, openWindow, pause, press, readyToCharge, scan, shown, textOf, type } from './window';

const barcodes = { '4006381333931': '1001', '4011200296908': '3003', '2000': '5001' };

describe('a scan', () => {
  it('rings up, and the same again is two', async () => {
    await openWindow({ barcodes });
    scan('4006381333931');
    await waitFor(() => expect(textOf('line-1')).toContain('Espresso'));
    scan('4006381333931', 'Tab');
    await waitFor(() => expect(textOf('line-1-qty')).toBe('2'));
    scan('4011200296908');
    await waitFor(() => expect(textOf('line-2')).toContain('Cinnamon bun'));
  });

  it.each(['search', 'article-1002', 'pay', 'line-remove', 'line-1-qty', 'nav-payments'])('rings up and presses nothing with the focus on %s', async (id) => {
    const till = await openWindow({ barcodes }, 1);
    byId(id).focus();
    const keys = scan('4006381333931');
    expect(keys.every((key) => key.defaultPrevented)).toBe(true);
    await waitFor(() => expect(textOf('line-2')).toContain('Espresso'));
    expect((await till.openSale()).lines.map(({ quantity }) => quantity)).toEqual(['1', '1']);
    expect(byId('search')).toHaveProperty('value', '');
    expect(maybe('pay-choice')).toBeNull();
  });

  it('is read on a Cyrillic layout', async () => {
    await openWindow({ barcodes: { 'KEFIR-1': '1001' } });
    const cyrillic: Record<string, string> = { K: 'Л', E: 'У', F: 'А', I: 'Ш', R: 'К' };
    scan('KEFIR-1', 'Enter', (sign) => {
      const letter = cyrillic[sign];
      if (letter !== undefined) return { key: letter, code: `Key${sign}`, shiftKey: true };
      return sign === '-' ? { key: '-', code: 'Minus' } : { key: sign, code: `Digit${sign}` };
    });
    await waitFor(() => expect(textOf('line-1')).toContain('Espresso'));
  });

  it('of what is not in the catalogue leaves the cart and says so until it is read', async () => {
    await openWindow({ barcodes }, 1);
    scan('999999999');
    expect((await shown('scan-unknown')).textContent).toContain('999999999');
    expect(maybe('line-2')).toBeNull();
    expect(textOf('line-1-qty')).toBe('1');
    scan('4006381333931');
    await waitFor(() => expect(maybe('line-2')).not.toBeNull());
    expect(maybe('scan-unknown')).not.toBeNull();
    await press('Escape');
    await waitFor(() => expect(maybe('scan-unknown')).toBeNull());
  });

  it('takes the count before it, and is never one itself', async () => {
    await openWindow({ barcodes });
    await type('5*');
    expect(textOf('times')).toContain('5 ×');
    scan('4006381333931');
    await waitFor(() => expect(textOf('line-1-qty')).toBe('5'));
    expect(maybe('times')).toBeNull();
    await click('line-1-qty');
    scan('4011200296908');
    await waitFor(() => expect(maybe('line-2')).not.toBeNull());
    // The quantity that is typed for the first line is still asked for.
    await type('7');
    await press('Enter');
    await waitFor(() => expect(textOf('line-1-qty')).toBe('7'));
    expect(textOf('line-2-qty')).toBe('1');
  });

  it('asks for the weight of what is weighed', async () => {
    const till = await openWindow({ barcodes });
    scan('2000');
    await waitFor(() => expect(textOf('weighing')).toBe('Bananas'));
    expect((await till.openSale()).lines).toHaveLength(0);
    scan('4006381333931');
    await waitFor(() => expect(textOf('line-1')).toContain('Espresso'));
    await type('0.5');
    await press('Enter');
    await waitFor(() => expect(textOf('line-2-qty')).toBe('0.5 kg'));
  });

  it('is ignored while a payment is under way', async () => {
    const till = await openWindow({ barcodes, bank: 'manual' }, 1);
    await click('pay');
    await click('tender-cash');
    scan('4006381333931');
    await pause(50);
    expect(textOf('total')).toBe('€3.40');
    await press('Escape');
    await readyToCharge();
    await click('confirm-pay');
    await shown('pay-sending');
    const add = vi.spyOn(till, 'addArticle');
    scan('4006381333931');
    await pause(50);
    expect(add).not.toHaveBeenCalled();
    expect(maybe('pay-sending')).not.toBeNull();
  });

  it('of the next customer begins the next sale', async () => {
    const till = await openWindow({ barcodes });
    scan('4006381333931');
    await waitFor(() => expect(maybe('line-1')).not.toBeNull());
    await press('F10');
    await waitFor(() => expect(document.activeElement).toBe(byId('confirm-pay')));
    await press('Enter');
    await shown('change');
    scan('4011200296908');
    await waitFor(() => expect(textOf('line-1')).toContain('Cinnamon bun'));
    expect((await till.openSale()).lines).toHaveLength(1);
  });

  it('in a field of a dialog is its text, and confirms nothing', async () => {
    await openWindow({ barcodes }, 1);
    await press('F7');
    await waitFor(() => expect(document.activeElement).toBe(byId('park-name')));
    (byId('park-name') as HTMLInputElement).select();
    scan('4006381333931');
    await waitFor(() => expect(byId('park-name')).toHaveProperty('value', '4006381333931'));
    expect(maybe('line-2')).toBeNull();
  });
});

describe('what is typed', () => {
  it('fast is not lost where it was no scan', async () => {
    await openWindow();
    byId('search').focus();
    scan('crois', null);
    await waitFor(() => expect(byId('search')).toHaveProperty('value', 'crois'));
    await shown('article-3001');
  });

  it('after / goes into the search at once', async () => {
    await openWindow();
    scan('/cin', null);
    await waitFor(() => expect(byId('search')).toHaveProperty('value', 'cin'));
  });

  it('as digits is an article number by Enter, and presses no tile', async () => {
    await openWindow();
    byId('article-1002').focus();
    await type('3003');
    expect(textOf('typed')).toContain('3003');
    await press('Enter');
    await waitFor(() => expect(textOf('line-1')).toContain('Cinnamon bun'));
    expect(maybe('line-2')).toBeNull();
  });
});
