// What is done to lines and to the sale, who may, and sales that are parked.

import { fireEvent, waitFor } from '@testing-library/svelte';
import { describe, expect, it, vi } from 'vitest';

import { byId, click, maybe, openWindow, press, shown, textOf, type } from './window';

const people = [
  { name: 'Ines', role: 'cashier', pin: '1111' },
  { name: 'Marta', role: 'manager', pin: '2468' },
  { name: 'Oleg', role: 'manager', pin: '1357' },
] as const;
const staff = () => people.map((person) => ({ ...person }));

async function keypad(keys: string): Promise<void> {
  for (const key of keys) await click(`keypad-${key === '.' ? 'decimal' : key}`);
}

describe('a line', () => {
  it('gets another price, and shows the one before', async () => {
    await openWindow({}, 1);
    await click('line-price');
    await keypad('300');
    expect(textOf('quantity-entry')).toContain('3.00');
    await click('quantity-set');
    await waitFor(() => expect(textOf('line-1-was')).toBe('instead of 3.40'));
    expect(textOf('total')).toBe('€3.00');
  });

  it('gets a discount in percent or as an amount, and loses it', async () => {
    await openWindow({}, 1);
    await click('line-discount');
    await keypad('10');
    await click('quantity-set');
    await waitFor(() => expect(textOf('line-1-off')).toBe('Discount −10 %'));
    expect(textOf('total')).toBe('€3.06');
    await click('line-discount');
    await click('discount-amount');
    await keypad('40');
    await click('quantity-set');
    await waitFor(() => expect(textOf('line-1-off')).toBe('Discount −0.40'));
    await click('line-discount');
    await click('discount-none');
    await waitFor(() => expect(maybe('line-1-off')).toBeNull());
    expect(textOf('total')).toBe('€3.40');
  });

  it('gets a note', async () => {
    await openWindow({}, 1);
    await click('line-note');
    await fireEvent.input(await shown('note'), { target: { value: 'oat milk' } });
    await click('note-set');
    await waitFor(() => expect(textOf('line-1-note')).toBe('oat milk'));
    await waitFor(() => expect(maybe('note')).toBeNull());
  });

  it('whose note is refused says why in the dialog', async () => {
    await openWindow({}, 1);
    await click('line-note');
    await fireEvent.input(await shown('note'), { target: { value: '4111111111111111' } });
    await click('note-set');
    expect((await shown('note-error')).dataset['code']).toBe('invalid-text');
    expect(maybe('line-1-note')).toBeNull();
  });

  it('whose discount is refused keeps what was typed and says why', async () => {
    await openWindow({}, 1);
    await click('line-discount');
    await keypad('101');
    await click('quantity-set');
    await waitFor(() => expect(byId('cart-error').dataset['code']).toBe('invalid-discount'));
    expect(textOf('quantity-entry')).toContain('101');
    expect(textOf('total')).toBe('€3.40');
  });
});

describe('the sale', () => {
  it('gets a discount, which undo takes back, by its word', async () => {
    await openWindow({}, 2);
    await click('sale-discount');
    await keypad('50');
    await click('quantity-set');
    await waitFor(() => expect(textOf('total')).toBe('€3.10'));
    expect(byId('undo').getAttribute('aria-label')).toBe('Undo: discount');
    await press('Ctrl+Z');
    await waitFor(() => expect(textOf('total')).toBe('€6.20'));
    await click('line-remove');
    await waitFor(() => expect(byId('undo').getAttribute('aria-label')).toBe('Undo: removal'));
    await click('undo');
    await waitFor(() => expect(maybe('line-2')).not.toBeNull());
  });

  it('asks for the price of what has none', async () => {
    const open = { sku: '9001', name: 'Repair', price: 0, openPrice: true, category: 'pantry', colour: '#1f5f8b', unit: 'piece', favourite: true, taxRate: '20' } as const;
    const till = await openWindow({ articles: [open, { ...open, sku: '1001', openPrice: false, price: 220 }], barcodes: { '40079': '9001' } });
    await click('article-9001');
    await keypad('1250');
    await click('quantity-set');
    await waitFor(() => expect(textOf('total')).toBe('€12.50'));
    await type('2*');
    await type('40079');
    await press('Enter');
    await waitFor(() => expect(textOf('entry-of')).toContain('Repair'));
    await type('100');
    await press('Enter');
    await waitFor(() => expect(textOf('total')).toBe('€14.50'));
    expect((await till.openSale()).lines.map(({ quantity }) => quantity)).toEqual(['1', '2']);
  });

  it('is rung up and paid in cash by keys alone', async () => {
    await openWindow();
    await press('/');
    for (const sign of '3003') await fireEvent.input(byId('search'), { target: { value: (byId('search') as HTMLInputElement).value + sign } });
    await press('Enter');
    await waitFor(() => expect(maybe('line-1')).not.toBeNull());
    await press('Escape');
    await press('F4');
    await type('2');
    await press('Enter');
    await waitFor(() => expect(textOf('total')).toBe('€5.60'));
    await press('F10');
    await waitFor(() => expect(document.activeElement).toBe(byId('confirm-pay')));
    await press('Enter');
    await shown('change');
  });

  it('shows its keys on ?, and takes another key for a use', async () => {
    await openWindow({}, 1);
    await press('?');
    await shown('keys');
    await click('change-park');
    await press('F9');
    await waitFor(() => expect(textOf('keys-told')).toContain('Pay'));
    await press('F6');
    await waitFor(() => expect(textOf('key-park')).toContain('F6'));
    await click('keys-close');
    await waitFor(() => expect(maybe('keys')).toBeNull());
    await press('F6');
    await shown('park-name');
  });
});

describe('what a cashier may not do alone', () => {
  it('is done with the PIN of a manager', async () => {
    const till = await openWindow({ people: staff() }, 1);
    const set = vi.spyOn(till, 'setPrice');
    await click('line-price');
    await type('100');
    await press('Enter');
    await shown('pin-dialog');
    expect(textOf('total')).toBe('€3.40');
    await click('pin-person-2');
    await type('2468');
    // The focus is on the person that was chosen.
    await press('Enter');
    await waitFor(() => expect(textOf('total')).toBe('€1.00'));
    await waitFor(() => expect(maybe('pin-dialog')).toBeNull());
    expect(set).toHaveBeenLastCalledWith(expect.anything(), 100, { personId: 2, pin: '2468' });
  });

  it('says how many tries are left and how long to wait, and is not done', async () => {
    await openWindow({ people: staff() }, 1);
    await click('line-price');
    await type('100');
    await press('Enter');
    await click('pin-person-2');
    for (let left = 4; left >= 1; left -= 1) {
      await click('pin-9');
      await click('pin-ok');
      await waitFor(() => expect(textOf('pin-told')).toContain(`${left} ${left === 1 ? 'try' : 'tries'} left`));
    }
    await click('pin-9');
    await click('pin-ok');
    await waitFor(() => expect(textOf('pin-told')).toMatch(/Wait (30|29) s/));
    expect(byId('pin-1')).toHaveProperty('disabled', true);
    await click('pin-back');
    await waitFor(() => expect(maybe('pin-dialog')).toBeNull());
    expect(byId('cart-error').dataset['code']).toBe('not-allowed');
    expect(textOf('total')).toBe('€3.40');
  });

  it('goes on after a log-in where the till is locked', async () => {
    const till = await openWindow({ people: staff() }, 1);
    till.staff.lock();
    await click('article-1001');
    expect((await shown('pin-dialog')).dataset['purpose']).toBe('log-in');
    await click('pin-person-1');
    for (const digit of '1111') await click(`pin-${digit}`);
    await click('pin-ok');
    await waitFor(() => expect(textOf('line-2')).toContain('Espresso'));
    await waitFor(() => expect(maybe('pin-dialog')).toBeNull());
  });
});

describe('a parked sale', () => {
  async function park(name: string): Promise<void> {
    await press('F7');
    await fireEvent.input(await shown('park-name'), { target: { value: name } });
    await click('park-yes');
    await waitFor(() => expect(maybe('park-name')).toBeNull());
  }

  it('waits under its name, among others, and comes back', async () => {
    const till = await openWindow({}, 2);
    await park('Table 4');
    await waitFor(() => expect(textOf('cart')).toContain('Nothing rung up yet'));
    await click('article-1001');
    await waitFor(() => expect(maybe('line-1')).not.toBeNull());
    await park('Blue coat');
    expect(maybe('held-sales')).toBeNull();
    await waitFor(() => expect(byId('parked-sales').getAttribute('aria-label')).toBe('Parked sales: 2'));
    await press('F8');
    const list = await shown('parked-list');
    expect(list.textContent).toMatch(/Table 4.*2 lines.*€6\.20.*Blue coat.*1 line.*€2\.20/s);
    const [table] = await till.heldSales();
    await click(`parked-${table!.id}`);
    await waitFor(() => expect(textOf('total')).toBe('€6.20'));
    await waitFor(() => expect(maybe('parked-list')).toBeNull());
  });

  it('is dropped only after a question', async () => {
    const till = await openWindow({}, 1);
    await park('Table 4');
    await press('F8');
    const [table] = await till.heldSales();
    await click(`drop-${table!.id}`);
    await click('drop-no');
    expect(await till.heldSales()).toHaveLength(1);
    await click(`drop-${table!.id}`);
    await click('drop-yes');
    await shown('parked-none');
    expect(await till.heldSales()).toHaveLength(0);
  });

  it('is none where nothing is rung up', async () => {
    await openWindow();
    await press('F7');
    expect(maybe('park-name')).toBeNull();
  });
});

describe('a receipt', () => {
  it('is printed again by Ctrl+P, and the printer’s fault is said', async () => {
    const till = await openWindow({}, 1);
    await press('Ctrl+P');
    await waitFor(() => expect(textOf('reprinted')).toContain('no receipt to print'));
    await press('F10');
    await waitFor(() => expect(document.activeElement).toBe(byId('confirm-pay')));
    await press('Enter');
    await shown('change');
    await press('Ctrl+P');
    await waitFor(() => expect(textOf('reprinted')).toContain('was printed'));
    await press('Ctrl+P');
    await waitFor(() => expect(textOf('reprinted')).toContain('copy 1'));
    till.printerFault = 'printer-unreachable';
    await press('Ctrl+P');
    await waitFor(() => expect(byId('reprinted').dataset['code']).toBe('printer-unreachable'));
  });
});
