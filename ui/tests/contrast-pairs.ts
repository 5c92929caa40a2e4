// Which colour is read on which, and where. A new pairing belongs in this list.

export type Pair = { kind: 'text' | 'mark'; colour: string; on: string[]; use: string };

const grounds = ['paper', 'surface', 'raised', 'well'];

function tone(name: string, use: string): Pair[] {
  return [
    { kind: 'text', colour: name, on: [...grounds, `${name}-soft`], use },
    { kind: 'text', colour: 'ink', on: [`${name}-soft`], use: `second line of: ${use}` },
  ];
}

export const pairs: Pair[] = [
  { kind: 'text', colour: 'ink', on: [...grounds, 'accent-soft'], use: 'everything that is read' },
  { kind: 'text', colour: 'ink-soft', on: [...grounds, 'accent-soft'], use: 'labels, hints, units' },
  { kind: 'text', colour: 'ink-faint', on: ['well', 'surface', 'raised'], use: 'a control that rests' },
  { kind: 'text', colour: 'accent', on: ['paper', 'surface', 'raised', 'accent-soft'], use: 'the name of the program, what is chosen' },
  { kind: 'text', colour: 'on-accent', on: ['accent', 'accent-press'], use: 'Pay, and the way forward in each dialog' },
  { kind: 'text', colour: 'paper', on: ['ink'], use: 'the filter that is on' },
  ...tone('ok', 'approved, all settled'),
  ...tone('open', 'no answer yet, waiting, accepted offline'),
  ...tone('bad', 'declined, the till cannot save'),
  ...tone('busy', 'saved, sending'),
  ...tone('look', 'needs a look'),
  ...tone('quiet', 'cancelled, at rest'),
  { kind: 'text', colour: 'ink-soft', on: ['ok-soft', 'open-soft', 'bad-soft', 'busy-soft', 'look-soft', 'quiet-soft'], use: 'labels in a state panel' },
  { kind: 'mark', colour: 'focus', on: [...grounds, 'accent-soft', 'ok-soft', 'open-soft', 'bad-soft', 'busy-soft', 'look-soft'], use: 'the ring around what has the keyboard' },
  { kind: 'mark', colour: 'line-strong', on: grounds, use: 'the edge of a button or a field' },
  { kind: 'mark', colour: 'accent', on: grounds, use: 'the edge of Pay, the line under the screen that is on' },
];
