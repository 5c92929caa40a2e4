import { describe, expect, it } from 'vitest';

import { catalogues } from '../src/i18n';
import { chipAnnouncement, chipWords } from '../src/lib/chip';
import { formatAmount, formatMoney } from '../src/lib/money';
import { fromThousandths, step, toThousandths } from '../src/lib/quantity';
import { ageOf } from '../src/lib/time';
import { START, summary } from './operations';

const plain = (text: string) => text.replace(/[\u00a0\u202f]/g, ' ');

describe('money', () => {
  it.each([
    [2490, 'EUR', '24.90', '24,90'],
    [5, 'EUR', '0.05', '0,05'],
    [0, 'EUR', '0.00', '0,00'],
    [-105, 'EUR', '\u22121.05', '\u22121,05'],
    [123_456_789, 'EUR', '1,234,567.89', '1 234 567,89'],
    [1250, 'JPY', '1,250', '1 250'],
    [1_250, 'BHD', '1.250', '1,250'],
    [7, 'BHD', '0.007', '0,007'],
    // Beyond what a float holds to the cent after a division by 100.
    [9_007_199_254_740_991, 'EUR', '90,071,992,547,409.91', '90 071 992 547 409,91'],
  ])('%i minor units of %s', (amount, currency, en, ru) => {
    expect(plain(formatAmount(amount, currency, 'en'))).toBe(en);
    expect(plain(formatAmount(amount, currency, 'ru'))).toBe(ru);
  });

  it('has the sign where the locale puts it', () => {
    expect(formatMoney(2490, 'EUR', 'en')).toBe('€24.90');
    expect(plain(formatMoney(2490, 'EUR', 'ru'))).toBe('24,90 €');
    expect(plain(formatMoney(2490, 'RUB', 'ru'))).toBe('24,90 ₽');
    expect(formatMoney(1250, 'JPY', 'en')).toBe('¥1,250');
  });

  it('refuses what is no whole number of minor units', () => {
    expect(() => formatAmount(24.9, 'EUR', 'en')).toThrow(RangeError);
  });
});

describe('quantities', () => {
  it('steps in exact thousandths', () => {
    expect(step('0.1', 'weight', 1)).toBe('0.2');
    expect(step('0.2', 'weight', 1)).toBe('0.3');
    expect(step('0.645', 'weight', -1)).toBe('0.545');
    expect(step('2', 'piece', 1)).toBe('3');
  });

  it('never steps to nothing', () => {
    expect(step('1', 'piece', -1)).toBeNull();
    expect(step('0.1', 'weight', -1)).toBeNull();
  });

  it('reads and writes the shortest form', () => {
    expect(toThousandths('1.5')).toBe(1500n);
    expect(toThousandths('1.2345')).toBeNull();
    expect(toThousandths('-1')).toBeNull();
    expect(fromThousandths(1500n)).toBe('1.5');
  });
});

describe('the chip', () => {
  const old = '2026-11-29T09:48:00Z';
  const waiting = summary({ chip: 'waiting', unsettled: 3, waiting: 3, amounts: [{ currency: 'EUR', amount: 7470 }], oldestAt: old });

  it.each([
    [summary(), 'All settled'],
    [summary({ chip: 'busy', unsettled: 3, sending: 3 }), 'Sending 3'],
    [waiting, '3 waiting, 74.70, oldest 12 min'],
    [summary({ chip: 'attention', needsAttention: 1 }), '1 needs a look'],
    [{ ...waiting, chip: 'attention' as const, needsAttention: 1 }, '1 needs a look · 3 waiting'],
    [summary({ chip: 'paused', paused: 'unauthorized', unsettled: 2 }), 'Paused, 2 waiting'],
  ])('%# says what is unsettled', (queue, words) => {
    expect(chipWords(queue, catalogues.en, 'en', START)).toBe(words);
  });

  it('tells a screen reader no age, which would speak every minute', () => {
    expect(chipAnnouncement(waiting, catalogues.en, 'en')).toBe('3 waiting, 74.70');
  });

  it('shows no negative age after the clock was set back', () => {
    expect(ageOf('2026-11-29T11:00:00Z', START)).toEqual({ unit: 'second', value: 0 });
  });
});
