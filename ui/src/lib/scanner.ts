// A barcode scanner is a keyboard that types fast. What could be a scan is held back until it is
// decided: a scan goes to the till and to nothing else, everything else goes on as it was typed.
// Pure: the caller says what time it is and calls `release` when `releaseAt` has come.

/** Below this mean gap between its keys a burst is a scan, in milliseconds. */
export const MEAN_GAP_MS = 35;
/** So long one key is waited for at least: a machine with much to do brings keys late. */
export const WAIT_MS = 70;
/** After a prefix nobody types: only a lost end is waited out. */
export const PREFIX_WAIT_MS = 400;
export const SCAN_CHARS_MIN = 4;
/** The longest code that is taken for one; more is a cat on the keyboard. */
export const SCAN_CHARS_MAX = 128;

/** One key that makes a sign. `us` is the sign of its place on a US keyboard, which scanners are set to. */
export type Stroke<K> = { typed: string; us: string | null; origin: K };
export type Key<K> = { kind: 'sign'; stroke: Stroke<K> } | { kind: 'end' } | { kind: 'other' };

export type Verdict<K> = {
  /** What was held back and was no scan: it goes first, in this order. */
  released: K[];
  /** `pass`: this key goes on as it is. `hold`: it is held back. Else it ended a scan, and is no key any more. */
  now: 'pass' | 'hold' | { scan: string };
  /** The keys of the scan, for where a scan is text. */
  strokes: K[];
};

export class Scanner<K> {
  #held: (Stroke<K> & { at: number })[] = [];

  constructor(public prefix: string | null = null) {}

  /** When what is held back is no scan any more; null while nothing is. */
  get releaseAt(): number | null {
    const last = this.#held.at(-1);
    const first = this.#held[0];
    if (last === undefined || first === undefined) return null;
    if (this.#prefixed) return last.at + PREFIX_WAIT_MS;
    // As long as one more key could still keep the mean, it is waited for.
    return Math.max(last.at + WAIT_MS, first.at + MEAN_GAP_MS * this.#held.length);
  }

  get #prefixed(): boolean {
    const first = this.#held[0];
    return first !== undefined && this.prefix !== null && (first.typed === this.prefix || first.us === this.prefix);
  }

  push(key: Key<K>, at: number): Verdict<K> {
    const releaseAt = this.releaseAt;
    const released = releaseAt !== null && at >= releaseAt ? this.release() : [];
    if (key.kind === 'sign') {
      if (this.#held.length === SCAN_CHARS_MAX) released.push(...this.release());
      this.#held.push({ ...key.stroke, at });
      return { released, now: 'hold', strokes: [] };
    }
    const code = key.kind === 'end' ? this.#code(at) : null;
    if (code === null) return { released: [...released, ...this.release()], now: 'pass', strokes: [] };
    return { released, now: { scan: code }, strokes: this.release() };
  }

  /** Gives back what is held: it was typed. */
  release(): K[] {
    const held = this.#held;
    this.#held = [];
    return held.map(({ origin }) => origin);
  }

  /** The code, where what is held and ends now is one. */
  #code(at: number): string | null {
    const held = this.#prefixed ? this.#held.slice(1) : this.#held;
    const first = held[0];
    if (first === undefined) return null;
    if (!this.#prefixed) {
      if (held.length < SCAN_CHARS_MIN) return null;
      // Of so many keys and their end there are as many gaps as keys.
      if (at - first.at >= MEAN_GAP_MS * held.length) return null;
    }
    return signsOf(held).trim() || null;
  }
}

/** What the scanner meant. A layout with no Latin letters has other signs in their places. */
function signsOf(strokes: readonly Stroke<unknown>[]): string {
  const foreign = strokes.some(({ typed }) => !/^[\x20-\x7e]$/.test(typed));
  // A French layout has signs where the others have digits.
  const digit = (us: string | null) => us !== null && /^\d$/.test(us);
  return strokes.map(({ typed, us }) => (foreign || digit(us) ? (us ?? typed) : typed)).join('');
}

/** A code with the count that was typed just before it: `5*4006381333931`. */
export function withCount(code: string): { code: string; count: string | null } {
  const [, count, rest] = /^(\d{1,5})\*([^*]+)$/.exec(code) ?? [];
  return count !== undefined && rest !== undefined ? { code: rest, count } : { code, count: null };
}
