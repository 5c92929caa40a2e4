import { describe, expect, it } from 'vitest';

import { changeable, changeKeys, chordsOf, defaultKeys, readKeys, useOf, uses, writeKeys, type KeyEvent } from '../src/lib/keys';

const press = (key: string, code: string, held: Partial<KeyEvent> = {}): KeyEvent => ({ key, code, ctrlKey: false, altKey: false, metaKey: false, shiftKey: false, ...held });
const useOfKey = (...about: Parameters<typeof press>) => useOf(defaultKeys, press(...about));

describe('a key', () => {
  it('has one use at most', () => {
    const all = uses.flatMap((use) => defaultKeys[use]);
    expect(new Set(all).size).toBe(all.length);
  });

  it.each([
    ['/', 'Slash', {}, 'search'],
    ['F2', 'F2', {}, 'search'],
    ['F7', 'F7', {}, 'park'],
    ['+', 'NumpadAdd', {}, 'more'],
    ['+', 'Equal', { shiftKey: true }, 'more'],
    ['?', 'Slash', { shiftKey: true }, 'help'],
    ['p', 'KeyP', { ctrlKey: true }, 'reprint'],
    ['P', 'KeyP', { ctrlKey: true }, 'reprint'],
    ['*', 'Digit8', { shiftKey: true }, 'times'],
  ] as const)('%s does what it says', (key, code, held, use) => expect(useOfKey(key, code, held)).toBe(use));

  it('is found by its place on a Russian layout', () => {
    expect(useOfKey('.', 'Slash')).toBe('search');
    expect(useOfKey(',', 'Slash', { shiftKey: true })).toBe('help');
    expect(useOfKey('я', 'KeyZ', { ctrlKey: true })).toBe('undo');
    expect(useOfKey('з', 'KeyP', { ctrlKey: true })).toBe('reprint');
  });

  it('is what it says on a German one', () => {
    expect(useOfKey('-', 'Slash')).toBe('less');
    expect(useOfKey('y', 'KeyZ', { ctrlKey: true })).toBeNull();
    expect(useOfKey('z', 'KeyY', { ctrlKey: true })).toBe('undo');
  });

  it('with Shift or Ctrl is another', () => {
    expect(useOfKey('F7', 'F7', { shiftKey: true })).toBeNull();
    expect(useOfKey('F9', 'F9', { ctrlKey: true })).toBeNull();
    expect(chordsOf(press('F7', 'F7', { shiftKey: true }))[0]).toBe('Shift+F7');
  });
});

describe('a change of keys', () => {
  it('refuses a key that has a use, and says which', () => {
    for (const use of changeable) {
      for (const other of uses.filter((each) => each !== use && changeable.includes(each))) {
        for (const chord of defaultKeys[other]) expect(changeKeys(defaultKeys, use, [chord])).toEqual({ refused: { why: 'taken', by: other } });
      }
    }
  });

  it.each(['5', 'a', 'ж', ' ', '.', 'Enter', 'Tab', 'Escape', 'Backspace', 'ArrowUp', 'Ctrl+C', 'Shift+Enter', '*'])('refuses %s, which people write or move with', (chord) => {
    expect(changeKeys(defaultKeys, 'park', [chord])).toEqual({ refused: { why: 'kept' } });
  });

  it('refuses no key at all, and what is not to be moved', () => {
    expect(changeKeys(defaultKeys, 'park', [])).toEqual({ refused: { why: 'none' } });
    expect(changeKeys(defaultKeys, 'confirm', ['F6'])).toEqual({ refused: { why: 'kept' } });
  });

  it('is kept over a restart, and frees the key before', () => {
    const moved = changeKeys(defaultKeys, 'park', ['F6']);
    if ('refused' in moved) throw new Error('refused');
    const again = readKeys(writeKeys(moved.map));
    expect(useOf(again, press('F6', 'F6'))).toBe('park');
    expect(useOf(again, press('F7', 'F7'))).toBeNull();
    expect(changeKeys(again, 'resume', ['F7'])).toHaveProperty('map');
  });

  it.each(['', 'no', '[]', '{"park":"F6"}', '{"park":[]}', '{"park":["F9"]}', '{"park":["a"]}', '{"park":[7]}'])('that was stored as %s is none', (stored) => {
    expect(readKeys(stored)).toEqual(defaultKeys);
  });
});
