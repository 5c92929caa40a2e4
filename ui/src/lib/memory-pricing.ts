// What the in-memory till works out of a cart: it stands in for the price engine.

import { grossOf, sum, taxIn } from './memory-figures';
import { toThousandths } from './quantity';
import type { Asked, Sale } from './types';

/** What a discount takes off a figure. */
export function offOf(figure: number, asked: Asked | null): number {
  if (asked === null) return 0;
  if (asked.amount !== undefined) return Math.min(asked.amount, figure);
  const exact = BigInt(figure) * (toThousandths(asked.percent ?? '0') ?? 0n);
  return Number((exact + 50_000n) / 100_000n);
}

/** Shares a figure in proportion by largest remainder; the earlier first. */
function share(figure: number, parts: number[]): number[] {
  const whole = BigInt(sum(parts));
  if (whole === 0n) return parts.map(() => 0);
  const exact = parts.map((part) => BigInt(figure) * BigInt(part));
  const shares = exact.map((each) => each / whole);
  const order = exact.map((each, at) => ({ rest: each % whole, at })).sort((a, b) => (a.rest === b.rest ? a.at - b.at : a.rest > b.rest ? -1 : 1));
  const left = BigInt(figure) - shares.reduce((a, b) => a + b, 0n);
  for (const { at } of order.slice(0, Number(left))) shares[at] = (shares[at] ?? 0n) + 1n;
  return shares.map(Number);
}

export function priceSale(sale: Sale): void {
  sale.lines.forEach((line, index) => {
    line.position = index + 1;
    line.gross = grossOf(line.unitPrice, line.quantity);
    line.discount = offOf(line.gross, line.discountAsked);
  });
  const totals = sale.lines.map(({ gross, discount }) => gross - discount);
  sale.discount = offOf(sum(totals), sale.discountAsked);
  const shares = share(sale.discount, totals);
  sale.lines.forEach((line, index) => {
    line.saleDiscount = shares[index] ?? 0;
    line.discount += line.saleDiscount;
    line.total = line.gross - line.discount;
  });
  const rates = [...new Set(sale.lines.map(({ taxRate }) => taxRate))].sort((a, b) => Number(a) - Number(b));
  sale.taxes = rates.map((rate) => {
    const gross = sum(sale.lines.filter((line) => line.taxRate === rate).map(({ total }) => total));
    const tax = taxIn(gross, rate);
    return { rate, net: gross - tax, tax };
  });
  sale.total = sum(sale.lines.map(({ total }) => total));
  sale.tax = sum(sale.taxes.map(({ tax }) => tax));
  sale.net = sale.total - sale.tax;
  sale.due = sale.total;
}
