// The keyboard, for the whole window. One rule stands before all others: a key that is held down
// is one press. Enter held on a button must not press what comes up in its place.

import type { Till } from './till.svelte';

function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement;
}

function pressesButtons(event: KeyboardEvent): boolean {
  return event.key === 'Enter' || event.key === ' ';
}

/** For what is tapped while something is typed: it takes the tap and leaves the keyboard to what is typed. */
export function keepKeyboard(event: MouseEvent): void {
  event.preventDefault();
  if (typing(document.activeElement)) (document.activeElement as HTMLElement).blur();
}

/** True where the element under the keyboard does something of its own on Enter. */
function ownEnter(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('button, a, input, [role="button"]') !== null;
}

/** Follows the keyboard until the result is called. */
export function followKeys(till: Till, focusSearch: () => void): () => void {
  const down = new Set<string>();
  /** Those that did something when they went down. */
  const acted = new Set<string>();
  let repeat = false;
  /** A dialog that this very key closes had the key for itself. */
  let inDialog = false;

  const guard = (event: KeyboardEvent) => {
    // Not every engine marks a repeat on every platform; a key that never came up is one.
    repeat = event.repeat || down.has(event.code);
    if (event.code !== '') down.add(event.code);
    inDialog = till.dialogs > 0;
    if (!pressesButtons(event) || typing(event.target)) return;
    const result = till.screen === 'sale' && (till.payment.at === 'operation' || till.payment.at === 'taken');
    const early = result && till.dialogs === 0 && till.guard.settling;
    if (repeat || early) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
  };

  const guardClick = (event: MouseEvent) => {
    const inPanel = till.screen === 'sale' && event.target instanceof Element && event.target.closest('main') !== null;
    // A click that a key or a screen reader makes has no number; the keys are guarded above.
    if (event.detail === 0 || till.guard.takes(event.detail) || !inPanel) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  };

  const up = (event: KeyboardEvent) => {
    down.delete(event.code);
    acted.delete(event.code);
  };
  const forget = () => {
    down.clear();
    acted.clear();
  };

  const act = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || inDialog) return;
    // Only what is typed goes away key by key.
    if (repeat && event.key !== 'Backspace') {
      if (acted.has(event.code)) event.preventDefault();
      return;
    }
    if (!press(till, event, focusSearch)) return;
    acted.add(event.code);
    event.preventDefault();
  };

  window.addEventListener('keydown', guard, true);
  window.addEventListener('click', guardClick, true);
  window.addEventListener('keyup', up, true);
  window.addEventListener('blur', forget);
  window.addEventListener('keydown', act);
  return () => {
    window.removeEventListener('keydown', guard, true);
    window.removeEventListener('click', guardClick, true);
    window.removeEventListener('keyup', up, true);
    window.removeEventListener('blur', forget);
    window.removeEventListener('keydown', act);
  };
}

/** Does what the key stands for; false where it stands for nothing here. */
function press(till: Till, event: KeyboardEvent, focusSearch: () => void): boolean {
  const { payment, sale } = till;
  switch (event.key) {
    case 'F12':
      till.go(till.screen === 'payments' ? 'sale' : 'payments');
      return true;
    case 'F9':
      if (till.screen === 'sale' && payment.at === 'closed' && sale.entry === null) void payment.open('card');
      return true;
    case 'F10':
      if (till.screen === 'sale' && sale.entry === null) void payment.open('cash', true);
      return true;
    case 'F2':
      if (payment.at === 'closed') focusSearch();
      return true;
    case 'F4':
      if (till.screen === 'sale' && payment.at === 'closed') sale.startEntry();
      return true;
  }
  if (event.key === 'Escape' && till.screen === 'payments') {
    till.go('sale');
    return true;
  }
  if (till.screen !== 'sale') return false;
  if (payment.at === 'choose') return pressInChoice(till, event);
  if (payment.at !== 'closed') return false;
  if (sale.entry !== null) return pressInEntry(till, event);
  return pressInCart(till, event, focusSearch);
}

function pressInChoice({ payment }: Till, event: KeyboardEvent): boolean {
  if (event.key === 'Escape') void payment.back();
  else if (/^\d$/.test(event.key)) payment.type(event.key);
  else if (event.key === 'Backspace') payment.type('backspace');
  else if (event.key === 'Enter' && !ownEnter(event.target)) void payment.confirm();
  else return false;
  return true;
}

/** The buttons beside a quantity that is typed say themselves what becomes of it. */
function endsEntry(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('[data-testid="quantity-back"], [data-testid="quantity-set"]') !== null;
}

function pressInEntry({ sale }: Till, event: KeyboardEvent): boolean {
  if (event.key === 'Escape') sale.cancelEntry();
  else if (/^\d$/.test(event.key)) sale.type(event.key);
  else if (event.key === '.' || event.key === ',') sale.type('.');
  else if (event.key === 'Backspace') sale.type('backspace');
  else if (event.key === 'Enter' && !endsEntry(event.target)) void sale.setEntry();
  else return false;
  return true;
}

function pressInCart({ sale, catalogue }: Till, event: KeyboardEvent, focusSearch: () => void): boolean {
  if (typing(event.target)) {
    if (event.key !== 'Escape') return false;
    catalogue.reset();
    (event.target as HTMLElement).blur();
    return true;
  }
  // By its place too: a Russian layout has another sign on this key.
  if (event.key === '/' || event.code === 'Slash') focusSearch();
  else if (event.key === '+') void sale.stepSelected(1);
  else if (event.key === '-') void sale.stepSelected(-1);
  else if (event.key === 'Delete') void sale.removeSelected();
  else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    // The arrows belong to the cart only while the focus is in it.
    if (!(event.target instanceof HTMLElement) || event.target.closest('[data-testid="cart"]') === null) return false;
    const at = sale.lines.findIndex((line) => line.id === sale.selectedId);
    const next = sale.lines[at + (event.key === 'ArrowDown' ? 1 : -1)];
    if (next) sale.select(next.id);
  } else return false;
  return true;
}
