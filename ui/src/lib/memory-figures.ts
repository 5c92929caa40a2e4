// What the in-memory till works out: it stands in for the price engine and the outbox's summary.

import { formatAmount } from './money';
import { toThousandths } from './quantity';
import type { Chip, Operation, Receipt, Sale, Summary } from './types';

const RECEIPT_COLUMNS = 40;

export const cards: Record<string, { brand: string; last4: string; declines?: string }> = {
  tok_visa: { brand: 'visa', last4: '4242' },
  tok_mastercard: { brand: 'mastercard', last4: '4444' },
  tok_mir: { brand: 'mir', last4: '2200' },
  tok_account_1: { brand: 'visa', last4: '0001' },
  tok_insufficient_funds: { brand: 'visa', last4: '9995', declines: 'insufficient_funds' },
  tok_expired: { brand: 'visa', last4: '0069', declines: 'expired' },
  tok_lost: { brand: 'visa', last4: '9987', declines: 'lost' },
  tok_do_not_honor: { brand: 'visa', last4: '0002', declines: 'do_not_honor' },
};

export const sum = (figures: number[]) => figures.reduce((a, b) => a + b, 0);

/** round(price × thousandths ÷ 1000), half away from zero. */
export function grossOf(price: number, quantity: string): number {
  const exact = BigInt(price) * (toThousandths(quantity) ?? 0n);
  return Number((exact + 500n) / 1000n);
}

/** The tax inside a gross figure: round(gross × rate ÷ (100 + rate)). */
export function taxIn(gross: number, rate: string): number {
  const thousandths = toThousandths(rate) ?? 0n;
  const below = 100_000n + thousandths;
  return Number((BigInt(gross) * thousandths * 2n + below) / (below * 2n));
}

export function receiptOf(sale: Sale): Receipt {
  const figure = (amount: number) => formatAmount(amount, sale.currency, 'en');
  const centred = (text: string) => ' '.repeat(Math.floor((RECEIPT_COLUMNS - text.length) / 2)) + text;
  const row = (left: string, right: string) => {
    const room = RECEIPT_COLUMNS - right.length;
    return left.slice(0, room - 1).padEnd(room) + right;
  };
  const rule = '-'.repeat(RECEIPT_COLUMNS);
  const lines = [
    centred('KASSA'),
    centred('Corner Shop, Till 1'),
    '',
    row(`Receipt ${sale.receiptNumber ?? ''}`, '2026-11-29 14:05'),
    rule,
    ...sale.lines.flatMap((line) => [row(line.name, figure(line.total)), `  ${line.quantity} x ${figure(line.unitPrice)}`]),
    rule,
    row('TOTAL', `${sale.currency} ${figure(sale.total)}`),
    ...sale.taxes.map(({ rate, tax }) => row(`of it tax ${rate} %`, figure(tax))),
    '',
    ...sale.tenders.flatMap((tender) =>
      tender.kind === 'cash'
        ? [row('Cash', figure(tender.tendered ?? 0)), row('Change', figure(tender.change ?? 0))]
        : [
            row(`Card ${tender.operation?.last4 ?? ''} ${tender.state}`, figure(tender.amount)),
            row(`Payment ${tender.operation?.shortCode ?? ''}`, tender.operation?.approvalCode ?? ''),
          ],
    ),
    '',
    centred('Thank you'),
  ];
  return { saleId: sale.id, receiptNumber: sale.receiptNumber, lines, text: lines.join('\n'), printed: 0 };
}

function chipOf(needsAttention: number, paused: string | null, waiting: number, unsettled: number): Chip {
  if (needsAttention > 0) return 'attention';
  if (paused !== null) return 'paused';
  if (waiting > 0) return 'waiting';
  return unsettled > 0 ? 'busy' : 'ok';
}

export function summaryOf(operations: Operation[], currency: string, paused: string | null): Summary {
  const unsettled = operations.filter(({ state }) => state === 'saved' || state === 'sending' || state === 'unknown');
  const waiting = unsettled.filter(({ state, attempts }) => state === 'unknown' || (state === 'saved' && attempts > 0));
  const needsAttention = operations.filter(({ state }) => state === 'needs_attention').length;
  return {
    unsettled: unsettled.length,
    sending: unsettled.length - waiting.length,
    waiting: waiting.length,
    amounts: unsettled.length === 0 ? [] : [{ currency, amount: sum(unsettled.map(({ amount }) => amount)) }],
    oldestAt: unsettled[0]?.createdAt ?? null,
    needsAttention,
    blocked: 0,
    tombstones: 0,
    backlog: null,
    clockGapS: null,
    otherBank: 0,
    paused,
    bankReachable: !waiting.some(({ lastAnswer }) => lastAnswer === 'no-connection'),
    bankProblem: null,
    lastContactAt: null,
    nextAttemptAt: unsettled[0]?.dueAt ?? null,
    chip: chipOf(needsAttention, paused, waiting.length, unsettled.length),
  };
}
