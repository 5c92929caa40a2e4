import { readFileSync, writeFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { contrast, tokensOf, type Theme } from './contrast';
import { pairs, type Pair } from './contrast-pairs';

const DESIGN = '../docs/DESIGN.md';
const FROM = '<!-- contrast: written by a test -->';
const TO = '<!-- end of contrast -->';
const themes: Theme[] = ['light', 'dark'];
const least = { text: 4.5, mark: 3 };

function ratio(theme: Theme, colour: string, on: string): number {
  const tokens = tokensOf(theme);
  const of = (name: string) => {
    const value = tokens[name];
    if (value === undefined) throw new Error(`no token --${name} in ${theme}`);
    return value;
  };
  return contrast(of(colour), of(on));
}

const worst = (theme: Theme, { colour, on }: Pair) => Math.min(...on.map((ground) => ratio(theme, colour, ground)));

function table(): string {
  const rows = pairs.map((pair) => {
    const [light, dark] = [worst('light', pair), worst('dark', pair)];
    const aim = pair.kind === 'mark' ? '' : Math.min(light, dark) >= 7 ? 'yes' : 'no';
    return `| \`${pair.colour}\` | ${pair.on.map((on) => `\`${on}\``).join(' ')} | ${pair.use} | ${light.toFixed(2)} | ${dark.toFixed(2)} | ${least[pair.kind]} | ${aim} |`;
  });
  return ['| Colour | On | Use | Light | Dark | At least | 7:1 |', '|---|---|---|---|---|---|---|', ...rows].join('\n');
}

describe('contrast', () => {
  it('is measured as WCAG does', () => {
    expect(contrast('#000000', '#ffffff')).toBe(21);
    expect(contrast('#777777', '#ffffff')).toBe(4.47);
    expect(contrast('#ffffff', '#767676')).toBe(4.54);
  });

  it.each(themes)('of everything in the %s theme is enough to be read', (theme) => {
    const short = pairs.flatMap((pair) =>
      pair.on.map((on) => ({ pair, on, got: ratio(theme, pair.colour, on) })).filter(({ got }) => got < least[pair.kind]),
    );
    expect(short.map(({ pair, on, got }) => `${pair.colour} on ${on}: ${got}, not ${least[pair.kind]}`)).toEqual([]);
  });

  it('is in the design as it is measured', () => {
    const page = readFileSync(DESIGN, 'utf8');
    const [before, rest] = page.split(FROM);
    const after = rest?.split(TO)[1];
    if (before === undefined || after === undefined) throw new Error(`${DESIGN} has no place for the table`);
    const told = `${before}${FROM}\n\n${table()}\n\n${TO}${after}`;
    if (process.env['UPDATE_DOCS']) writeFileSync(DESIGN, told);
    else expect(page, 'write it anew: UPDATE_DOCS=1 npx vitest run tests/contrast.test.ts').toBe(told);
  });
});
