import { waitFor } from '@testing-library/svelte';
import { describe, expect, it } from 'vitest';

import { catalogues } from '../src/i18n';
import { errorWords } from '../src/lib/error-words';
import type { CommandError, ErrorCode } from '../src/lib/types';
import { byId, click, maybe, openWindow, press, readyToCharge, shown, textOf } from './window';

const error = (code: ErrorCode, details: CommandError['details'] = null): CommandError => ({ code, message: 'for the log', retryable: false, details });

describe('the words of an error', () => {
  it('say what happened, whether the money is safe and what to do, for every code in every language', () => {
    for (const [locale, text] of Object.entries(catalogues)) {
      const codes = Object.keys(text.error) as ErrorCode[];
      expect(codes.length).toBeGreaterThan(50);
      for (const code of codes) {
        const words = errorWords(error(code), text, locale as 'en' | 'ru');
        for (const part of Object.values(words)) expect(part, `${locale} ${code}`).toMatch(/[.!?]$/);
        const all = Object.values(words).join(' ');
        expect(all, code).not.toMatch(/failed|synced|retry payment/i);
        expect(all, code).not.toContain('for the log');
      }
    }
  });

  it('hold the figures that came with it', () => {
    const text = catalogues.en;
    expect(errorWords(error('wrong-pin', { kind: 'wrong-pin', triesLeft: 2, waitS: 0 }), text, 'en').what).toBe('Wrong PIN. 2 tries before a wait.');
    expect(errorWords(error('pin-wait', { kind: 'pin-wait', waitS: 30 }), text, 'en').what).toContain('Wait 30 s.');
    expect(errorWords(error('over-due', { kind: 'over-due', amount: 200, due: 185, currency: 'EUR' }), text, 'en').what).toContain('1.85');
    expect(errorWords(error('internal'), text, 'en').money).toBe('What was saved is kept.');
  });
});

describe('closing while payments are not settled', () => {
  it('says how many and how much, and stays unless told otherwise', async () => {
    const till = await openWindow({ bank: 'silent' }, 1);
    await readyToCharge();
    await click('confirm-pay');
    await shown('pay-unknown');
    till.askToClose();
    const guard = await shown('close-guard');
    expect(guard.closest('[role="dialog"]')?.textContent).toContain('1 payment not yet settled');
    expect(textOf('close-guard')).toMatch(/\d\.\d\d.*They stay safe and go on at next start\./);
    await waitFor(() => expect(document.activeElement).toBe(byId('stay')));
    await click('stay');
    await waitFor(() => expect(maybe('close-guard')).toBeNull());
    expect(till.closed).toBe(false);
    till.askToClose();
    await click('close-anyway');
    await waitFor(() => expect(till.closed).toBe(true));
  });
});

describe('the top bar', () => {
  it('shows who is logged in where there are people, and locks', async () => {
    const till = await openWindow();
    expect(maybe('lock')).toBeNull();
    till.who = { locked: false, person: { id: 1, name: 'Ada', role: 'cashier' } };
    till.tellSession();
    expect((await shown('lock')).textContent).toContain('Ada');
    await click('lock');
    await waitFor(() => expect(till.who.locked).toBe(true));
    await waitFor(() => expect(maybe('lock')).toBeNull());
  });

  it('changes language, theme and size of text, and keeps them', async () => {
    await openWindow();
    await click('look-menu');
    await click('language-ru');
    await waitFor(() => expect(textOf('nav-sale')).toBe('Продажа'));
    await click('theme-dark');
    await click('text-size-150');
    await waitFor(() => expect(document.documentElement.dataset).toMatchObject({ theme: 'dark', size: '150' }));
    expect(localStorage.getItem('kassa.text-size')).toBe('150');
    await press('Escape');
    await waitFor(() => expect(maybe('language-ru')).toBeNull());
  });

  it('shows how far the backlog of an outage is', async () => {
    const till = await openWindow();
    expect(maybe('backlog')).toBeNull();
    till.tellBacklog({ settled: 30, total: 120 });
    const bar = (await shown('backlog')) as HTMLProgressElement;
    expect(bar.value).toBe(30);
    expect(bar.getAttribute('aria-label')).toBe('After the outage: 30 of 120 settled');
  });
});

describe('what a command refuses', () => {
  it('is said inside the dialog that is open, and not behind it', async () => {
    const till = await openWindow({ bank: 'silent' }, 1);
    await readyToCharge();
    await click('confirm-pay');
    await shown('pay-unknown');
    till.askToClose();
    await shown('close-guard');
    till.refuseClose = 'internal';
    await click('close-anyway');
    const said = await shown('command-error');
    expect(said.closest('[role="dialog"]')).not.toBeNull();
    expect(textOf('command-error')).toContain('What was saved is kept.');
  });
});
