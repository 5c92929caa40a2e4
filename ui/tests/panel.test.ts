import { describe, expect, it } from 'vitest';

import { catalogues } from '../src/i18n';
import { panelOf, settledPanel, type StatePanelId } from '../src/lib/panel';
import { panelWords } from '../src/lib/panel-words';
import { newer } from '../src/lib/queue.svelte';
import { operation, START, summary } from './operations';

type Row = [what: string, Parameters<typeof operation>[0], Parameters<typeof summary>[0] | null, afterMs: number, StatePanelId];

const rows: Row[] = [
  ['just saved', { state: 'saved' }, {}, 0, 'pay-sending'],
  ['saved, nothing known of the bank', { state: 'saved' }, { bankReachable: null }, 0, 'pay-sending'],
  ['saved, no summary yet', { state: 'saved' }, null, 0, 'pay-sending'],
  ['saved, connection refused', { state: 'saved', attempts: 1, lastAnswer: 'no-connection' }, {}, 0, 'pay-unknown'],
  ['saved again after a try', { state: 'saved', attempts: 1 }, {}, 0, 'pay-unknown'],
  ['saved, bank known to be away', { state: 'saved' }, { bankReachable: false }, 0, 'pay-unknown'],
  ['saved, queue paused', { state: 'saved' }, { paused: 'unauthorized' }, 0, 'pay-unknown'],
  ['first try under way', { state: 'sending', attempts: 1 }, {}, 9_000, 'pay-sending'],
  ['taken up after a kill', { state: 'sending', attempts: 2 }, {}, 0, 'pay-sending'],
  ['tried again after no answer', { state: 'sending', attempts: 2, lastAnswer: 'time-out' }, {}, 0, 'pay-unknown'],
  ['bank at it, 9.9 s', { state: 'sending', attempts: 3, lastAnswer: 'in-progress' }, {}, 9_900, 'pay-sending'],
  ['bank at it, 10.2 s', { state: 'sending', attempts: 3, lastAnswer: 'in-progress' }, {}, 10_200, 'pay-unknown'],
  ['no answer', { state: 'unknown', attempts: 1, lastAnswer: 'time-out' }, {}, 0, 'pay-unknown'],
  ['bank busy', { state: 'unknown', attempts: 1, lastAnswer: 'rate-limited' }, {}, 0, 'pay-unknown'],
  ['approved', { state: 'approved', attempts: 1 }, { bankReachable: false }, 0, 'pay-approved'],
  ['declined', { state: 'declined', attempts: 1 }, {}, 0, 'pay-declined'],
  ['cancelled', { state: 'cancelled', attempts: 1 }, {}, 0, 'pay-cancelled'],
  ['needs attention', { state: 'needs_attention', attempts: 1 }, {}, 0, 'pay-attention'],
];

describe('the panel of a payment', () => {
  it.each(rows)('%s', (_, change, queue, afterMs, panel) => {
    expect(panelOf(operation(change), queue === null ? null : summary(queue), START + afterMs)).toBe(panel);
  });

  it('stays on "no answer yet" through further tries, until the bank has spoken', () => {
    expect(settledPanel('pay-unknown', 'pay-sending')).toBe('pay-unknown');
    expect(settledPanel('pay-unknown', 'pay-approved')).toBe('pay-approved');
    expect(settledPanel(null, 'pay-sending')).toBe('pay-sending');
  });

  it('never goes back from a final result to an older account of it', () => {
    const approved = operation({ state: 'approved', updatedAt: '2026-11-29T10:00:01Z' });
    expect(newer(approved, operation({ state: 'saved', updatedAt: '2026-11-29T10:00:02Z' }))).toBe(approved);
    const sending = operation({ state: 'sending', attempts: 1 });
    expect(newer(sending, operation({ state: 'saved', attempts: 0 }))).toBe(sending);
    expect(newer(sending, approved)).toBe(approved);
  });
});

describe('the later account of a payment', () => {
  it('is the one told last, whatever the clock said', () => {
    const before = operation({ state: 'sending', attempts: 2, updatedAt: '2026-11-29T12:00:00Z' });
    const told = operation({ state: 'unknown', attempts: 2, updatedAt: '2026-11-29T10:00:00Z' });
    expect(newer(before, told)).toBe(told);
  });

  it('is the one with the receipt number between two final ones', () => {
    const bare = operation({ state: 'approved' });
    const numbered = operation({ state: 'approved', receiptNumber: 1042 });
    expect(newer(bare, numbered)).toBe(numbered);
    expect(newer(numbered, bare)).toBe(numbered);
    expect(newer(numbered, operation({ state: 'declined' }))).toBe(numbered);
  });
});

describe('the words of a payment', () => {
  const english: [StatePanelId, Parameters<typeof operation>[0], string, string][] = [
    ['pay-sending', {}, 'Asking the bank… 24.90', 'Payment K7Q2. Keep the card ready.'],
    ['pay-approved', { approvalCode: '8F21K0' }, 'Approved 24.90', 'Approval 8F21K0. Charged once.'],
    ['pay-declined', { declineCode: 'insufficient_funds' }, 'Declined. Not charged.', 'Not enough funds. Ask for another way to pay.'],
    ['pay-unknown', {}, 'No answer yet. Do not charge again.', 'The payment is saved. We keep asking with the same number.'],
    ['pay-cancelled', { attempts: 1 }, 'Cancelled. The bank confirms no charge.', 'A late copy will be refused.'],
    ['pay-cancelled', { attempts: 0 }, 'Cancelled before it was sent.', 'A late copy will be refused.'],
    ['pay-attention', { reason: 'bank: reversal' }, 'Needs a look.', 'Nothing is sent again by itself. (The bank’s people are looking into it)'],
    ['pay-attention', {}, 'Needs a look.', 'Nothing is sent again by itself.'],
  ];
  it.each(english)('%s in English: %o', (panel, change, headline, second) => {
    expect(panelWords(panel, operation(change), catalogues.en, 'en')).toEqual({ headline, second });
  });

  it.each(english)('%s in Russian: %o', (panel, change) => {
    const { headline, second } = panelWords(panel, operation({ ...change }), catalogues.ru, 'ru');
    expect(headline).toMatch(/[а-я]/i);
    expect(headline + second).not.toMatch(/fail|cancel|неудач|ошибк|оффлайн|офлайн/i);
    if (panel === 'pay-sending' || panel === 'pay-approved') expect(headline).toContain('24,90');
  });

  it.each(['insufficient_funds', 'expired', 'lost', 'do_not_honor', 'unknown_card', 'late_decline'] as const)(
    'says %s in both languages',
    (code) => {
      for (const text of Object.values(catalogues)) {
        const { second } = panelWords('pay-declined', operation({ declineCode: code }), text, 'en');
        expect(second).toContain(text.decline[code]);
      }
    },
  );

  it('has words for a decline code that it has never heard of', () => {
    expect(panelWords('pay-declined', operation({ declineCode: 'constructor' }), catalogues.en, 'en').second).toBe(
      'The card’s bank says no. Ask for another way to pay.',
    );
  });
});
