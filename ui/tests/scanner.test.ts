import { describe, expect, it } from 'vitest';

import { MEAN_GAP_MS, SCAN_CHARS_MIN, Scanner, withCount, type Key } from '../src/lib/scanner';

const sign = (typed: string, us: string | null = typed): Key<string> => ({ kind: 'sign', stroke: { typed, us, origin: typed } });
const END: Key<string> = { kind: 'end' };

type Told = { typed: string; scans: string[]; passed: number };

/** Keys at their times, with the timer that the window sets. */
function play(keys: readonly (readonly [Key<string>, number])[], prefix: string | null = null): Told {
  const scanner = new Scanner<string>(prefix);
  const told: Told = { typed: '', scans: [], passed: 0 };
  for (const [key, at] of keys) {
    if (scanner.releaseAt !== null && scanner.releaseAt <= at) told.typed += scanner.release().join('');
    const { released, now } = scanner.push(key, at);
    told.typed += released.join('');
    if (typeof now === 'object') told.scans.push(now.scan);
    else if (now === 'pass') told.passed += 1;
  }
  told.typed += scanner.release().join('');
  return told;
}

function burst(code: string, gap: number, end: Key<string> | null = END): [Key<string>, number][] {
  const keys = [...code].map((each): Key<string> => sign(each));
  return [...keys, ...(end === null ? [] : [end])].map((key, at) => [key, at * gap]);
}

/** A source of chance that a test can repeat. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

describe('a scan', () => {
  it.each([0, 1, 5, 12, 20, 34])('is a burst with gaps of %i ms', (gap) => {
    expect(play(burst('4006381333931', gap))).toEqual({ typed: '', scans: ['4006381333931'], passed: 0 });
  });

  it.each([35, 36, 50, 69, 80, 150, 1000])('is none with gaps of %i ms: all of it was typed', (gap) => {
    expect(play(burst('4006381333931', gap))).toEqual({ typed: '4006381333931', scans: [], passed: 1 });
  });

  it('has four signs at least, and an end', () => {
    expect(play(burst('123', 5))).toEqual({ typed: '123', scans: [], passed: 1 });
    expect(play(burst('1234', 5)).scans).toEqual(['1234']);
    expect(play(burst('4006381333931', 5, null))).toEqual({ typed: '4006381333931', scans: [], passed: 0 });
    expect(play(burst('4006381333931', 5, { kind: 'other' }))).toEqual({ typed: '4006381333931', scans: [], passed: 1 });
  });

  it('may stumble, as long as the mean holds', () => {
    const keys = burst('40063813', 5).map(([key, at], index): [Key<string>, number] => [key, at + (index >= 4 ? 90 : 0)]);
    expect(play(keys).scans).toEqual(['40063813']);
    expect(play([[sign('4'), 0], [sign('0'), 60], [sign('0'), 65], [sign('6'), 70], [END, 75]]).scans).toEqual(['4006']);
  });

  it('comes after another without a mix', () => {
    const twice = [...burst('11112222', 3), ...burst('33334444', 3).map(([key, at]): [Key<string>, number] => [key, at + 40])];
    expect(play(twice)).toEqual({ typed: '', scans: ['11112222', '33334444'], passed: 0 });
  });

  it('means its digits and letters on a Cyrillic layout, and digits on a French one', () => {
    const cyrillic: [Key<string>, number][] = [[sign('Ф', 'A'), 0], [sign('И', 'B'), 5], [sign('С', 'C'), 10], [sign('7'), 15], [sign('.', '/'), 20], [END, 25]];
    expect(play(cyrillic).scans).toEqual(['ABC7/']);
    const french = [...'&(-_'].map((typed, at): [Key<string>, number] => [sign(typed, '1568'[at]!), at * 4]);
    expect(play([...french, [END, 16]]).scans).toEqual(['1568']);
  });

  it('is known by its prefix however slow it is', () => {
    const slow = burst('~123', 200);
    expect(play(slow, '~').scans).toEqual(['123']);
    expect(play(slow, null)).toEqual({ typed: '~123', scans: [], passed: 1 });
    expect(play(burst('~1', 1000), '~')).toEqual({ typed: '~1', scans: [], passed: 1 });
  });

  it('is never held for longer than one could wait for', () => {
    const scanner = new Scanner<string>();
    scanner.push(sign('a'), 1000);
    expect(scanner.releaseAt! - 1000).toBeLessThan(100);
  });

  it('loses and doubles no key, and is one exactly where the rule says so', () => {
    const random = chance(20_261_130);
    let scans = 0;
    for (let round = 0; round < 20_000; round += 1) {
      const fast = random() < 0.5;
      const length = 1 + Math.floor(random() * 14);
      let at = 0;
      const gaps: number[] = [];
      const keys: [Key<string>, number][] = [];
      for (let n = 0; n <= length; n += 1) {
        const gap = n === 0 ? 0 : Math.floor(random() * (fast ? 40 : 130));
        at += gap;
        if (n > 0) gaps.push(gap);
        keys.push([n === length ? END : sign(String(Math.floor(random() * 10))), at]);
      }
      const code = keys.slice(0, -1).map(([key]) => (key.kind === 'sign' ? key.stroke.typed : '')).join('');
      const told = play(keys);
      // Each key is typed or scanned, once, in its order.
      expect(told.typed + told.scans.join('')).toBe(code);
      expect(told.passed).toBe(told.scans.length === 1 ? 0 : 1);
      const mean = gaps.reduce((a, b) => a + b, 0) / gaps.length;
      if (told.scans[0] === code) {
        expect(mean).toBeLessThan(MEAN_GAP_MS);
        expect(length).toBeGreaterThanOrEqual(SCAN_CHARS_MIN);
        scans += 1;
      }
      // Where every gap is one of a scanner, nothing keeps it from being a scan.
      if (length >= SCAN_CHARS_MIN && gaps.every((gap) => gap < MEAN_GAP_MS)) expect(told.scans).toEqual([code]);
      if (mean >= MEAN_GAP_MS && gaps.every((gap) => gap >= MEAN_GAP_MS)) expect(told.scans).toEqual([]);
    }
    expect(scans).toBeGreaterThan(1000);
  });
});

describe('a count before a scan', () => {
  it('is one with its star, and only before a code', () => {
    expect(withCount('5*4006381333931')).toEqual({ code: '4006381333931', count: '5' });
    for (const code of ['4006381333931', '*ABC*', '5*ABC*', '5*', '123456*4006']) expect(withCount(code)).toEqual({ code, count: null });
  });
});
