// Which key does what. Every use has its keys; a key has one use. A person can change most of them.

export const uses = [
  'search',
  'quantity',
  'park',
  'resume',
  'pay',
  'cash-exact',
  'payments',
  'reprint',
  'undo',
  'more',
  'less',
  'remove',
  'times',
  'back',
  'confirm',
  'help',
] as const;
export type Use = (typeof uses)[number];

/** A key with its modifiers, as people write it: `F4`, `/`, `Ctrl+Z`, `Shift+F7`. */
export type Chord = string;
export type KeyMap = Readonly<Record<Use, readonly Chord[]>>;

export const defaultKeys: KeyMap = {
  search: ['/', 'F2'],
  quantity: ['F4'],
  park: ['F7'],
  resume: ['F8'],
  pay: ['F9'],
  'cash-exact': ['F10'],
  payments: ['F12'],
  reprint: ['Ctrl+P'],
  undo: ['Ctrl+Z'],
  more: ['+'],
  less: ['-'],
  remove: ['Delete'],
  times: ['*'],
  back: ['Escape'],
  confirm: ['Enter'],
  help: ['?'],
};

/** What a key does to what has the focus is not for a person to move. */
const fixed: readonly Use[] = ['times', 'back', 'confirm'];
export const changeable: readonly Use[] = uses.filter((use) => !fixed.includes(use));

export type KeyEvent = Pick<KeyboardEvent, 'key' | 'code' | 'ctrlKey' | 'altKey' | 'metaKey' | 'shiftKey'>;

/** As it stands on the key, for those whose name is another. */
const marks: Record<string, string> = { Delete: 'Del', Escape: 'Esc', '-': '−' };

/** A chord as people read it: `Ctrl + Z`, `Del`. */
export function chordWords(chord: Chord): string {
  return chord
    .split(/\+(?=.)/)
    .map((part) => marks[part] ?? part)
    .join(' + ');
}

/** What a US keyboard has in a place: `KeyZ` is `z`, `Slash` with Shift is `?`. */
const places: Record<string, string> = {
  Backquote: '`~',
  Minus: '-_',
  Equal: '=+',
  BracketLeft: '[{',
  BracketRight: ']}',
  Backslash: '\\|',
  Semicolon: ';:',
  Quote: '\'"',
  Comma: ',<',
  Period: '.>',
  Slash: '/?',
  Space: '  ',
  NumpadDecimal: '..',
  NumpadAdd: '++',
  NumpadSubtract: '--',
  NumpadMultiply: '**',
  NumpadDivide: '//',
};
const SHIFTED_DIGITS = ')!@#$%^&*(';

/** The sign that a US keyboard would have made, or null for a key that makes none. */
export function usSign({ code, shiftKey }: Pick<KeyEvent, 'code' | 'shiftKey'>): string | null {
  const letter = /^Key([A-Z])$/.exec(code)?.[1];
  if (letter !== undefined) return shiftKey ? letter : letter.toLowerCase();
  const digit = /^Digit(\d)$/.exec(code)?.[1];
  if (digit !== undefined) return shiftKey ? (SHIFTED_DIGITS[Number(digit)] ?? null) : digit;
  return /^Numpad(\d)$/.exec(code)?.[1] ?? places[code]?.[shiftKey ? 1 : 0] ?? null;
}

function modified(event: KeyEvent, key: string): Chord {
  const command = event.ctrlKey || event.altKey || event.metaKey;
  // Shift is part of the sign that it makes, and is said only where it makes none.
  const shift = event.shiftKey && (key.length > 1 || command);
  const name = key.length === 1 && command ? key.toUpperCase() : key;
  return [event.ctrlKey && 'Ctrl', event.altKey && 'Alt', event.metaKey && 'Meta', shift && 'Shift', name].filter(Boolean).join('+');
}

/** The chords that an event can be, the likeliest first: by its sign, then by its place for a layout that has another sign there. */
export function chordsOf(event: KeyEvent): Chord[] {
  const commanded = event.ctrlKey || event.altKey || event.metaKey;
  const place = usSign({ code: event.code, shiftKey: event.shiftKey && !commanded });
  const chords = [modified(event, event.key)];
  // A Latin letter is what it says: on a German keyboard Z and Y have changed places.
  const says = /^[a-z]$/i.test(event.key) && /^[a-z]$/i.test(place ?? '');
  if (place !== null && place !== event.key && !says) chords.push(modified(event, place));
  return chords;
}

/** What a key stands for; null where it stands for nothing. */
export function useOf(map: KeyMap, event: KeyEvent): Use | null {
  for (const chord of chordsOf(event)) {
    const use = uses.find((each) => map[each].includes(chord));
    if (use !== undefined) return use;
  }
  return null;
}

export type Refusal = { why: 'taken'; by: Use } | { why: 'kept' } | { why: 'none' };

/** Keys that write, move about or press what has the focus. */
const kept = /^(?:[\p{L}\p{N} .,]|Enter|Escape|Tab|Backspace|Home|End|PageUp|PageDown|Insert|Arrow.*|Shift|Control|Alt|Meta|CapsLock|.*Lock|Dead|Unidentified|Process|Ctrl\+[ACVX]|\*)$/u;

export function isKept(chord: Chord): boolean {
  return kept.test(chord.replace(/^Shift\+(?=.{2})/, ''));
}

/** The map with other keys for a use, or why not. */
export function changeKeys(map: KeyMap, use: Use, chords: readonly Chord[]): { map: KeyMap } | { refused: Refusal } {
  const wanted = [...new Set(chords)];
  if (wanted.length === 0) return { refused: { why: 'none' } };
  if (!changeable.includes(use) || wanted.some(isKept)) return { refused: { why: 'kept' } };
  for (const chord of wanted) {
    const by = uses.find((other) => other !== use && map[other].includes(chord));
    if (by !== undefined) return { refused: { why: 'taken', by } };
  }
  return { map: { ...map, [use]: wanted } };
}

/** The map as it is stored: what differs from the default. */
export function writeKeys(map: KeyMap): string {
  const changed = changeable.filter((use) => map[use].join(' ') !== defaultKeys[use].join(' '));
  return JSON.stringify(Object.fromEntries(changed.map((use) => [use, map[use]])));
}

/** The map that was stored. What is no map, or has two uses of one key, is the default. */
export function readKeys(stored: string | null): KeyMap {
  const told = parsed(stored);
  if (told === null) return defaultKeys;
  const map: Record<Use, readonly Chord[]> = { ...defaultKeys };
  for (const use of changeable) {
    const chords = told[use];
    if (chords === undefined) continue;
    if (!Array.isArray(chords) || chords.length === 0 || !chords.every((each) => typeof each === 'string' && each !== '' && !isKept(each)))
      return defaultKeys;
    map[use] = chords as Chord[];
  }
  const all = uses.flatMap((use) => map[use]);
  return new Set(all).size === all.length ? map : defaultKeys;
}

function parsed(stored: string | null): Record<string, unknown> | null {
  if (stored === null) return null;
  try {
    const told: unknown = JSON.parse(stored);
    return typeof told === 'object' && told !== null && !Array.isArray(told) ? (told as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
