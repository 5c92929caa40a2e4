// Contrast as WCAG 2 measures it, over the tokens as they stand in the style sheet.

import { readFileSync } from 'node:fs';

export type Theme = 'light' | 'dark';
export type Tokens = Record<string, string>;

const sheet = readFileSync('src/styles/tokens.css', 'utf8');

/** The colours of a theme, as `#rrggbb`. Shadows and the scrim are no colours that anything is read by. */
export function tokensOf(theme: Theme): Tokens {
  const head = theme === 'light' ? ':root {\n  color-scheme: light;' : ":root[data-theme='dark'] {\n  color-scheme: dark;";
  const from = sheet.indexOf(head);
  if (from < 0) throw new Error(`no block of the ${theme} theme in tokens.css`);
  const block = sheet.slice(from, sheet.indexOf('}', from));
  return Object.fromEntries([...block.matchAll(/--([\w-]+):\s*(#[0-9a-f]{6});/g)].map(([, name, value]) => [name, value]));
}

function channel(value: number): number {
  const share = value / 255;
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
}

function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => channel(Number.parseInt(colour.slice(at, at + 2), 16))) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** From 1 to 21, rounded down to two decimals: a ratio is never told better than it is. */
export function contrast(one: string, other: string): number {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
  return Math.floor(((light + 0.05) / (dark + 0.05)) * 100) / 100;
}
