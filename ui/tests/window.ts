// The window over a till in memory, with hands.

import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/svelte';

import App from '../src/App.svelte';
import { MemoryBackend, type MemoryOptions } from '../src/lib/backend-memory';
import { WAIT_MS } from '../src/lib/scanner';

export const byId = (id: string) => screen.getByTestId(id);
export const maybe = (id: string) => screen.queryByTestId(id);
export const textOf = (id: string) => (byId(id).textContent ?? '').replace(/\s+/g, ' ').trim();

/** Waits until the test id is there, and gives its element. */
export async function shown(id: string): Promise<HTMLElement> {
  return waitFor(() => byId(id));
}

/** A finger or a mouse on what has the test id, once it takes a click. */
export async function click(id: string): Promise<void> {
  const target = await waitFor(() => {
    const found = byId(id);
    if (found.closest('[data-settling]')) throw new Error(`${id} takes no click yet`);
    return found;
  });
  await tap(target);
}

/** Presses and lets go of a pointer; `count` is which click of a series it is. */
export async function tap(target: HTMLElement, count = 1): Promise<void> {
  const init = { bubbles: true, cancelable: true, detail: count };
  // What is clicked has the focus, in the engine that the window runs in too.
  if (target.dispatchEvent(new MouseEvent('mousedown', init))) target.focus();
  target.dispatchEvent(new MouseEvent('mouseup', init));
  await fireEvent.click(target, { detail: count });
}

/** A key goes down and up again at what has the focus, as slowly as a person does it; a chord is written `Ctrl+Z`. */
export async function press(chord: string): Promise<void> {
  const [, held, key = chord] = /^(Ctrl)\+(.+)$/.exec(chord) ?? [];
  const target = document.activeElement ?? document.body;
  const init = { key, code: codeOf(key), ctrlKey: held === 'Ctrl', bubbles: true, cancelable: true };
  const down = new KeyboardEvent('keydown', init);
  target.dispatchEvent(down);
  // jsdom gives keys no default action; a button's is a click.
  if (!down.defaultPrevented && target instanceof HTMLButtonElement && (key === 'Enter' || key === ' ')) target.click();
  target.dispatchEvent(new KeyboardEvent('keyup', { key, code: codeOf(key), bubbles: true }));
  // What could begin a scan is held back for a moment.
  await (key.length === 1 && !init.ctrlKey ? pause(WAIT_MS + 15) : Promise.resolve());
}

/** A person types a text. */
export async function type(text: string): Promise<void> {
  for (const sign of text) await press(sign);
}

/** A scanner reads a code: its keys come at once, and Enter ends them. */
export function scan(code: string, end: 'Enter' | 'Tab' | null = 'Enter', of: (sign: string) => KeyboardEventInit = (sign) => ({ key: sign, code: codeOf(sign) })): KeyboardEvent[] {
  const keys = [...[...code].map(of), ...(end === null ? [] : [{ key: end, code: end }])];
  const start = performance.now();
  return keys.map((init, at) => {
    const target = document.activeElement ?? document.body;
    const down = new KeyboardEvent('keydown', { ...init, bubbles: true, cancelable: true });
    // A loaded machine comes to them late; they were made when the scanner made them.
    Object.defineProperty(down, 'timeStamp', { value: start + at * 5 });
    target.dispatchEvent(down);
    if (!down.defaultPrevented && target instanceof HTMLButtonElement && (init.key === 'Enter' || init.key === ' ')) target.click();
    target.dispatchEvent(new KeyboardEvent('keyup', { ...init, bubbles: true }));
    return down;
  });
}

/** A key is held: `times` keydowns and no keyup. */
export async function hold(key: string, times: number, marked: boolean): Promise<void> {
  for (let n = 0; n < times; n += 1) {
    const target = document.activeElement ?? document.body;
    const down = new KeyboardEvent('keydown', {
      key,
      code: codeOf(key),
      repeat: marked && n > 0,
      bubbles: true,
      cancelable: true,
    });
    target.dispatchEvent(down);
    if (!down.defaultPrevented && target instanceof HTMLButtonElement) target.click();
    await new Promise((done) => setTimeout(done, 5));
  }
}

function codeOf(key: string): string {
  if (/^[a-z]$/i.test(key)) return `Key${key.toUpperCase()}`;
  return key === ' ' ? 'Space' : /^\d$/.test(key) ? `Digit${key}` : key;
}

/** Opens the window; `lines` articles are rung up before. */
export async function openWindow(options: MemoryOptions = {}, lines = 0): Promise<MemoryBackend> {
  const till = new MemoryBackend({ answerAfterMs: 20, ...options });
  for (const sku of ['1002', '3003', '6001', '4002'].slice(0, lines)) await till.addArticle(sku, null);
  render(App, { backend: till });
  await shown('cart');
  await waitFor(() => byId('article-1001'));
  if (lines > 0) await waitFor(() => byId(`line-${lines}`));
  return till;
}

/** The program ends and starts again over the same till. */
export function restart(till: MemoryBackend): void {
  cleanup();
  render(App, { backend: till });
}

/** Resolves after `ms` of the machine's time. */
export const pause = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));

/** A promise that is kept from outside. */
export function gate(): { open: () => void; passed: Promise<void> } {
  let open = () => {};
  const passed = new Promise<void>((done) => (open = done));
  return { open, passed };
}

export const STAFF = [
  { name: 'Maria', role: 'manager', pin: '4711' },
  { name: 'Ann', role: 'cashier', pin: '2580' },
] as const;

/** Maria types her PIN, which the till has asked for. */
export async function managerAllows(): Promise<void> {
  await click('pin-person-1');
  for (const key of ['pin-4', 'pin-7', 'pin-1', 'pin-1', 'pin-ok']) await click(key);
}

/** Chooses a card in the Pay dialog, up to the moment before the click that charges. */
export async function readyToCharge(token = 'tok_visa'): Promise<void> {
  await click('pay');
  await click('tender-card');
  await click(`card-${token}`);
  await waitFor(() => {
    if ((byId('confirm-pay') as HTMLButtonElement).disabled) throw new Error('confirm-pay is not ready');
  });
}
