// Holds back what could be a scan, and gives back what was typed: to the field or the key's own
// use, as if it came just then.

import { usSign } from './keys';
import { Scanner, type Key } from './scanner';

/** A timer that comes so late was held up itself, and so were the keys that came meanwhile. */
const LATE_MS = 20;

type Field = HTMLInputElement | HTMLTextAreaElement;

export type ScanHooks = {
  scanned: (code: string) => void;
  prefix: () => string | null;
  /** Whether a scan is text here: in a field that is not the sale's. */
  isText: (target: EventTarget | null) => 'no' | 'text' | 'text-and-end';
};

const givenBack = new WeakSet<Event>();

/** True for a key that was held back and goes on now. */
export function isGivenBack(event: Event): boolean {
  return givenBack.has(event);
}

export function isField(target: EventTarget | null): target is Field {
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement;
}

export class Scanning {
  #scanner = new Scanner<KeyboardEvent>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly hooks: ScanHooks) {}

  /** True where the key goes no further: it is held back, or ended a scan. */
  take(event: KeyboardEvent, repeated: boolean): boolean {
    if (isGivenBack(event) || isModifier(event)) return false;
    this.#scanner.prefix = this.hooks.prefix();
    const key = keyOf(event, repeated, this.#scanner.releaseAt !== null);
    const { released, now, strokes } = this.#scanner.push(key, event.timeStamp);
    clearTimeout(this.#timer);
    giveBack(released);
    if (now === 'hold') this.#wait(event.timeStamp);
    if (typeof now !== 'object') return now === 'hold';
    const text = this.hooks.isText(event.target);
    if (text === 'no') this.hooks.scanned(now.scan);
    else giveBack(strokes);
    return text !== 'text-and-end';
  }

  /** What is held was typed: something else happens now. */
  release(): void {
    clearTimeout(this.#timer);
    giveBack(this.#scanner.release());
  }

  #wait(at: number): void {
    const ms = (this.#scanner.releaseAt ?? at) - at;
    const due = performance.now() + ms;
    this.#timer = setTimeout(() => {
      if (performance.now() - due < LATE_MS) return this.release();
      this.#timer = setTimeout(() => this.release(), LATE_MS);
    }, ms);
  }
}

function isModifier({ key }: KeyboardEvent): boolean {
  return /^(Shift|Control|Alt|AltGraph|Meta|CapsLock|NumLock)$/.test(key);
}

function keyOf(event: KeyboardEvent, repeated: boolean, holding: boolean): Key<KeyboardEvent> {
  const commanded = (event.ctrlKey || event.altKey || event.metaKey) && !event.getModifierState('AltGraph');
  // A key that is held down writes as fast as a scanner does.
  if (repeated || commanded || event.isComposing) return { kind: 'other' };
  if (event.key === 'Enter' || event.key === 'Tab') return { kind: 'end' };
  // Space presses what has the focus; inside a code it is a sign.
  if (event.key.length !== 1 || (event.key === ' ' && !holding)) return { kind: 'other' };
  return { kind: 'sign', stroke: { typed: event.key, us: usSign(event), origin: event } };
}

function giveBack(events: readonly KeyboardEvent[]): void {
  for (const event of events) {
    const field = isField(event.target) && event.target.isConnected ? event.target : null;
    const target = field ?? document.activeElement ?? document.body;
    const { key, code, location, shiftKey, ctrlKey, altKey } = event;
    const again = new KeyboardEvent('keydown', { key, code, location, shiftKey, ctrlKey, altKey, bubbles: true, cancelable: true });
    givenBack.add(again);
    if (!target.dispatchEvent(again)) continue;
    if (isField(target)) write(target, key);
    else if (key === ' ' && target instanceof HTMLButtonElement) target.click();
  }
}

/** Writes a sign where the caret is, as the key would have. */
function write(field: Field, sign: string): void {
  if (field.disabled || field.readOnly) return;
  const from = field.selectionStart ?? field.value.length;
  const to = field.selectionEnd ?? from;
  if (field.maxLength >= 0 && field.value.length - (to - from) >= field.maxLength) return;
  field.setRangeText(sign, from, to, 'end');
  field.dispatchEvent(new InputEvent('input', { bubbles: true, inputType: 'insertText', data: sign }));
}
