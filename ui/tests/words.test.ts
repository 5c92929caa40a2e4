import { describe, expect, it } from 'vitest';

import { catalogues, reasonWords } from '../src/i18n';

describe('why a payment waits', () => {
  it('says for whom, where it belongs to another bank', () => {
    const reason = 'other-bank: demo at 0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b';
    for (const text of Object.values(catalogues)) {
      expect(reasonWords(text, reason)).toContain('demo at 0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b');
      expect(reasonWords(text, reason)).not.toContain('other-bank');
    }
  });
});
