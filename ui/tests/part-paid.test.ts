import { waitFor } from '@testing-library/svelte';
import { describe, expect, it } from 'vitest';

import type { Operation } from '../src/lib/types';
import { click, maybe, openWindow, press, shown, textOf } from './window';

/** A sale of 6.20 of which 3.00 go on a card. */
async function chargedInPart() {
  const till = await openWindow({ bank: 'manual' }, 2);
  await click('pay');
  await shown('confirm-pay');
  for (const key of ['keypad-3', 'keypad-00']) await click(key);
  await click('card-tok_visa');
  await click('confirm-pay');
  await shown('pay-sending');
  const settle = (change: Partial<Operation>) => till.settle(till.made[0]!.key, { attempts: 1, ...change });
  return { till, settle };
}

describe('a sale that is paid in part', () => {
  it('can be put aside from the approved panel, and taken up again', async () => {
    const { settle, till } = await chargedInPart();
    settle({ state: 'approved' });
    await shown('pay-rest');
    expect(maybe('back-to-cart')).toBeNull();
    await click('hold-sale');
    await shown('article-1001');
    await click(`held-${till.made[0]!.saleId}`);
    await waitFor(() => expect(textOf('due')).toBe('€3.20'));
  });

  it('can be put aside from the choice, which Esc does not leave', async () => {
    const { settle } = await chargedInPart();
    settle({ state: 'approved' });
    await click('pay-rest');
    await shown('pay-choice');
    expect(maybe('pay-back')).toBeNull();
    await press('Escape');
    expect(maybe('command-error')).toBeNull();
    expect(maybe('pay-choice')).not.toBeNull();
    await click('hold-sale');
    await shown('article-1001');
    await shown('held-sales');
  });

  it.each(['declined', 'cancelled'] as const)('can be put aside where the rest was %s', async (state) => {
    const { settle } = await chargedInPart();
    settle({ state: 'approved' });
    await click('pay-rest');
    await click('card-tok_mastercard');
    await click('confirm-pay');
    await shown('pay-sending');
    settle({ state });
    await shown(`pay-${state}`);
    expect(maybe('back-to-cart')).toBeNull();
    await click('hold-sale');
    await shown('article-1001');
  });

  it('is not said to be complete while a rest is due', async () => {
    const { settle } = await chargedInPart();
    settle({ state: 'unknown', lastAnswer: 'time-out' });
    await click('hold-sale');
    await shown('article-1001');
    settle({ state: 'approved' });
    await waitFor(() => expect(textOf('held-sales')).toContain('Approved 3.00. 3.20 still to pay.'));
    expect(textOf('held-sales')).not.toContain('complete');
    await click('look-menu');
    await click('language-ru');
    await press('Escape');
    await waitFor(() => expect(textOf('held-sales')).toContain('Одобрено 3,00. Осталось оплатить 3,20.'));
  });
});
