// The keyboard, for the whole window. One rule stands before all others: a key that is held down
// is one press. Enter held on a button must not press what comes up in its place.

import { useOf, type Use } from './keys';
import { isField, isGivenBack, Scanning } from './scanning';
import type { Till } from './till.svelte';

function pressesButtons(event: KeyboardEvent): boolean {
  return event.key === 'Enter' || event.key === ' ';
}

/** For what is tapped while something is typed: it takes the tap and leaves the keyboard to what is typed. */
export function keepKeyboard(event: MouseEvent): void {
  event.preventDefault();
  if (isField(document.activeElement)) (document.activeElement as HTMLElement).blur();
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
  const scanning = new Scanning({
    scanned: (code) => void till.scans.take(code),
    prefix: () => till.preferences.scannerPrefix,
    isText: (target) => {
      // A PIN that was typed fast is no article, and is shown to nobody.
      if (till.approvals.question !== null) return 'text';
      if (!isField(target)) return 'no';
      return till.dialogs > 0 ? 'text' : till.screen === 'sale' ? 'no' : 'text-and-end';
    },
  });

  const guard = (event: KeyboardEvent) => {
    // Not every engine marks a repeat on every platform; a key that never came up is one.
    repeat = !isGivenBack(event) && (event.repeat || down.has(event.code));
    if (event.code !== '' && !isGivenBack(event)) down.add(event.code);
    const repeated = repeat;
    if (scanning.take(event, repeated)) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    // What was given back before it has had its own turn.
    repeat = repeated;
    inDialog = till.dialogs > 0;
    if (!pressesButtons(event) || isField(event.target)) return;
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
  const point = () => scanning.release();
  const forget = () => {
    scanning.release();
    down.clear();
    acted.clear();
  };

  const act = (event: KeyboardEvent) => {
    if (event.defaultPrevented || inDialog) return;
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
  window.addEventListener('pointerdown', point, true);
  window.addEventListener('click', guardClick, true);
  window.addEventListener('keyup', up, true);
  window.addEventListener('blur', forget);
  window.addEventListener('keydown', act);
  return () => {
    scanning.release();
    window.removeEventListener('keydown', guard, true);
    window.removeEventListener('pointerdown', point, true);
    window.removeEventListener('click', guardClick, true);
    window.removeEventListener('keyup', up, true);
    window.removeEventListener('blur', forget);
    window.removeEventListener('keydown', act);
  };
}

/** Does what the key stands for; false where it stands for nothing here. */
function press(till: Till, event: KeyboardEvent, focusSearch: () => void): boolean {
  const use = useOf(till.preferences.keys, event);
  if (event.ctrlKey || event.altKey || event.metaKey) return use !== null && pressUse(till, use, event, focusSearch);
  if (use !== null && (event.key.length > 1 || !isField(event.target)) && pressUse(till, use, event, focusSearch)) return true;
  if (till.screen !== 'sale') return false;
  if (till.payment.at === 'choose') return pressInChoice(till, event);
  if (till.payment.at !== 'closed') return false;
  return till.sale.entry === null ? pressInCart(till, event) : pressInEntry(till, event);
}

/** What has a key of its own, wherever the focus is. False where it is nothing just now. */
function pressUse(till: Till, use: Use, event: KeyboardEvent, focusSearch: () => void): boolean {
  const { payment, sale } = till;
  const field = isField(event.target);
  const selling = till.screen === 'sale' && payment.at === 'closed';
  const free = selling && sale.entry === null;
  switch (use) {
    case 'payments':
      till.go(till.screen === 'payments' ? 'sale' : 'payments');
      return true;
    case 'help':
      till.helping = true;
      return true;
    case 'reprint':
      void till.reprint();
      return true;
    case 'pay':
      if (free) void payment.open('card');
      return true;
    case 'cash-exact':
      if (till.screen === 'sale' && sale.entry === null) void payment.open('cash', true);
      return true;
    case 'search':
      // Where a Russian layout has its point, and a count is being typed.
      if (/^[.,]$/.test(event.key) && sale.count.typed !== '') return false;
      if (payment.at !== 'closed' || (till.screen === 'sale' && !free && event.key.length === 1)) return false;
      focusSearch();
      return true;
    case 'quantity':
      if (selling) sale.startEntry();
      return true;
    case 'park':
      if (free) till.parking.ask();
      return true;
    case 'resume':
      if (free) till.parking.list();
      return true;
    case 'undo':
      // In a field it is the field's own.
      if (field || !selling) return false;
      if (free) void sale.undo();
      return true;
    case 'more':
    case 'less':
    case 'remove':
      if (field || !free) return false;
      if (use === 'remove') void sale.removeSelected();
      else void sale.stepSelected(use === 'more' ? 1 : -1);
      return true;
    case 'times':
      return free && !field && sale.count.multiply();
    case 'back':
      if (till.screen === 'sale') return false;
      if (field) (event.target as HTMLElement).blur();
      else till.go('sale');
      return true;
    case 'confirm':
      return false;
  }
}

function pressInChoice({ payment }: Till, event: KeyboardEvent): boolean {
  if (event.key === 'Escape') void payment.back();
  else if (/^\d$/.test(event.key)) payment.type(event.key);
  else if (event.key === 'Backspace') payment.type('backspace');
  else if (event.key === 'Enter' && !ownEnter(event.target)) void payment.confirm();
  else return false;
  return true;
}

/** The buttons beside what is typed say themselves what becomes of it. */
function endsEntry(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('[data-ends-entry]') !== null;
}

function pressInEntry({ sale }: Till, event: KeyboardEvent): boolean {
  if (event.key === 'Escape') sale.cancelEntry();
  else if (/^\d$/.test(event.key)) sale.type(event.key);
  else if (event.key === '.' || event.key === ',') sale.type('.');
  else if (event.key === '%') sale.discountBy('percent');
  else if (event.key === 'Backspace') sale.type('backspace');
  else if (event.key === 'Enter' && !endsEntry(event.target)) void sale.setEntry();
  else return false;
  return true;
}

function pressInCart(till: Till, event: KeyboardEvent): boolean {
  const { sale, catalogue, scans } = till;
  if (isField(event.target)) {
    if (event.key !== 'Escape') return false;
    catalogue.reset();
    event.target.blur();
    return true;
  }
  if (/^[\d.,]$/.test(event.key)) return sale.count.type(event.key.replace(',', '.'));
  if (event.key === 'Backspace') return sale.count.type('backspace');
  if (event.key === 'Escape') {
    if (sale.count.clear()) return true;
    if (scans.dismiss()) return true;
    return sale.dismiss();
  }
  // What was typed is an article's number, and no press of what has the focus.
  if (event.key === 'Enter') {
    const code = sale.count.takeCode();
    if (code === null) return false;
    void scans.ring(code);
    return true;
  }
  if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    // The arrows belong to the cart only while the focus is in it.
    if (!(event.target instanceof HTMLElement) || event.target.closest('[data-testid="cart"]') === null) return false;
    const at = sale.lines.findIndex((line) => line.id === sale.selectedId);
    const next = sale.lines[at + (event.key === 'ArrowDown' ? 1 : -1)];
    if (next) sale.select(next.id);
    return true;
  }
  return false;
}
