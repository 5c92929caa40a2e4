import { describe, expect, it } from 'vitest';

import { catalogues } from '../src/i18n';

/** Every text of a catalogue by its path; functions are called with 1, 2 and 5 of everything. */
function texts(node: unknown, path = ''): [path: string, text: string][] {
  if (typeof node === 'string') return [[path, node]];
  if (typeof node === 'function') {
    return [1, 2, 5].flatMap((n): [string, string][] => {
      const about = path === '.age' ? { unit: 'minute', value: n } : n;
      return [[`${path}(${n})`, String((node as (...all: unknown[]) => unknown)(about, `#${n}`, null))]];
    });
  }
  return Object.entries(node as Record<string, unknown>).flatMap(([name, child]) => texts(child, `${path}.${name}`));
}

describe('the catalogue', () => {
  it('has the same texts in both languages, none of them empty', () => {
    const [en, ru] = [texts(catalogues.en), texts(catalogues.ru)];
    expect(ru.map(([path]) => path)).toEqual(en.map(([path]) => path));
    for (const [path, text] of [...en, ...ru]) expect(text.trim(), path).not.toBe('');
  });

  it('never says "failed", "synced" or "retry payment"', () => {
    for (const [path, text] of texts(catalogues.en)) expect(text, path).not.toMatch(/failed|synced|retry payment/i);
  });

  it('is Russian in Russian', () => {
    const latin = new Set(['.app.name', '.top.languageCode']);
    for (const [path, text] of texts(catalogues.ru)) {
      if (!latin.has(path) && !/^[\s#\d]*$/.test(text)) expect(text, path).toMatch(/[а-яё]/i);
    }
  });

  it('counts as Russians do', () => {
    const { items } = catalogues.ru.cart;
    expect([1, 2, 5, 11, 21, 22].map(items)).toEqual([
      '1 позиция',
      '2 позиции',
      '5 позиций',
      '11 позиций',
      '21 позиция',
      '22 позиции',
    ]);
  });
});
