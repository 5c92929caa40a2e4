// States to look at in a browser, by the address: ?lines=3&bank=silent&do=pay,card-tok_visa,confirm-pay
// Never part of what ships.

import { MemoryBackend, type BankScript } from './backend-memory';
import { manyArticles } from './memory-catalogue';
import type { MemoryPerson } from './memory-people';
import type { Operation } from './types';

const WAIT_STEP_MS = 20;
const WAIT_LIMIT_MS = 4000;

const staff: MemoryPerson[] = [
  { name: 'Ines', role: 'cashier', pin: '1111' },
  { name: 'Marta Hohenstein-Wagenknecht', role: 'manager', pin: '2468' },
  { name: 'Oleg', role: 'manager', pin: '1357' },
];

let demo: MemoryBackend | null = null;

function ago(minutes: number): string {
  return new Date(Date.now() - minutes * 60_000).toISOString();
}

async function pastPayments(till: MemoryBackend, many: number): Promise<void> {
  till.bank = 'manual';
  const skus = ['1002', '3001', '6001', '4002', '5004'];
  const states: Partial<Operation>[] = [
    { state: 'approved', approvalCode: '8F21K0', attempts: 1 },
    { state: 'approved', approvalCode: 'Q7T2M4', attempts: 1 },
    { state: 'declined', declineCode: 'insufficient_funds', attempts: 1 },
    { state: 'approved', approvalCode: '51ZP9C', attempts: 3 },
    { state: 'cancelled', attempts: 2 },
    { state: 'needs_attention', reason: 'key-reused', attempts: 2 },
    { state: 'unknown', lastAnswer: 'time-out', attempts: 4 },
    { state: 'saved', lastAnswer: 'no-connection', attempts: 2 },
  ];
  for (let n = 0; n < many; n += 1) {
    await till.newSale();
    await till.addArticle(skus[n % skus.length] ?? '1001', String(1 + (n % 3)));
    const sale = await till.openSale();
    const { tenderId } = await till.beginTender(sale.id);
    const made = await till.payCard({ tenderId, saleId: sale.id, amount: sale.due, card: n % 2 ? 'tok_visa' : 'tok_mastercard' });
    const change = states[n % states.length] as Partial<Operation>;
    till.settle(made.key, { state: 'sending', attempts: 1, createdAt: ago((many - n) * 11) }, 'sent', 'POST /v1/payments');
    if (change.attempts !== 1) till.settle(made.key, { state: 'unknown', lastAnswer: 'time-out' }, 'answer', 'time-out');
    till.settle(made.key, change, change.lastAnswer ? 'answer' : 'result', change.lastAnswer ?? change.state ?? '');
    if ((await till.openSale()).state !== 'completed') await till.holdSale(sale.id);
  }
  await till.newSale();
}

/** Sales that were taken offline and then declined. */
async function lateDeclines(till: MemoryBackend, many: number): Promise<void> {
  const { bank } = till;
  till.bank = 'manual';
  for (let n = 0; n < many; n += 1) {
    await till.newSale();
    await till.addArticle(n % 2 ? '3001' : '6001', String(1 + n));
    const sale = await till.openSale();
    const { tenderId } = await till.beginTender(sale.id);
    const made = await till.payCard({ tenderId, saleId: sale.id, amount: sale.due, card: 'tok_visa' });
    till.settle(made.key, { state: 'unknown', attempts: 1, lastAnswer: 'time-out' }, 'answer', 'time-out');
    await till.takeOffline({ tenderId, contact: 'Anna, 555 12 34', overLimit: true }, null);
    till.settle(made.key, { state: 'declined', declineCode: 'insufficient_funds', attempts: 2 }, 'result', '402 · declined');
  }
  await till.newSale();
  till.bank = bank;
}

export async function demoBackend(ask: URLSearchParams): Promise<MemoryBackend> {
  demo = new MemoryBackend({
    currency: ask.get('currency') ?? 'EUR',
    answerAfterMs: Number(ask.get('after') ?? 900),
    ...(ask.has('articles') ? { articles: [] } : {}),
    ...(ask.has('many') ? { articles: manyArticles(Number(ask.get('many'))) } : {}),
    ...(ask.has('people') ? { people: staff } : {}),
  });
  const payments = Number(ask.get('payments') ?? 0);
  if (payments > 0) await pastPayments(demo, payments);
  if (ask.has('nohold')) for (const sale of await demo.heldSales()) demo.forget(sale.id);
  const skus = ['1002', '3003', '2003', '5001', '6001', '4002', '1006', '6005', '3004', '2001', '5004', '6008', '1004', '4005', '6006'];
  for (const sku of skus.slice(0, Number(ask.get('lines') ?? 0))) await demo.addArticle(sku, sku === '5001' ? '0.645' : null);
  if (ask.has('big')) await demo.addArticle('6001', '999');
  for (const name of (ask.get('parked') ?? '').split(',').filter(Boolean)) {
    await demo.addArticle('1002', '2');
    await demo.parkSale((await demo.openSale()).id, name);
  }
  if (ask.has('edited')) await edit(demo);
  demo.bank = (ask.get('bank') ?? 'by-card') as BankScript;
  const late = Number(ask.get('late') ?? 0);
  if (late > 0) await lateDeclines(demo, late);
  if (ask.has('limit')) demo.pay.limits = { ...demo.pay.limits, paymentMax: Number(ask.get('limit')) };
  if (ask.has('printer')) demo.printerFault = ask.get('printer') as MemoryBackend['printerFault'];
  if (ask.has('storage')) demo.storageFault = 'No space left on the disk';
  if (ask.has('real')) demo.bundled = false;
  if (ask.has('person')) demo.who = { locked: false, person: { id: 1, name: ask.get('person') ?? '', role: 'cashier' } };
  if (ask.has('paused')) demo.paused = ask.get('paused');
  for (const name of ['kassa.theme', 'kassa.language', 'kassa.text-size']) {
    const value = ask.get(name);
    if (value !== null) localStorage.setItem(name, value);
  }
  return demo;
}

/** A price, a discount, a note and a discount on all. */
async function edit(till: MemoryBackend): Promise<void> {
  const { id, lines } = await till.openSale();
  const [first, second, third] = lines;
  if (first) await till.setPrice(first.id, 300);
  if (second) await till.discountLine(second.id, { percent: '12.5' });
  if (third) await till.setNote(third.id, 'without sugar, and the lid apart, for the lady at the window');
  await till.discountSale(id, { amount: 100 });
}

/** Clicks through `do`, a list of test ids, each as soon as it is there; `state=…` settles the newest payment. */
export async function playDemo(ask: URLSearchParams): Promise<void> {
  for (const id of (ask.get('do') ?? '').split(',').filter(Boolean)) {
    const target = await found(id);
    target?.click();
    await pause(WAIT_STEP_MS);
  }
  if (ask.has('closing')) demo?.askToClose();
  if (ask.has('backlog')) demo?.tellBacklog({ settled: 31, total: 120 });
  const state = ask.get('state') as Operation['state'] | null;
  const newest = demo?.made[0];
  if (demo && newest && state) {
    demo.settle(newest.key, {
      state,
      attempts: ask.has('never') ? 0 : 2,
      approvalCode: state === 'approved' ? '8F21K0' : null,
      declineCode: state === 'declined' ? (ask.get('code') ?? 'insufficient_funds') : null,
      reason: state === 'needs_attention' ? (ask.get('code') ?? 'key-reused') : null,
      lastAnswer: state === 'unknown' ? 'time-out' : null,
      dueAt: new Date(Date.now() + 9000).toISOString(),
    });
  }
}

async function found(id: string): Promise<HTMLElement | null> {
  for (let waited = 0; waited < WAIT_LIMIT_MS; waited += WAIT_STEP_MS) {
    const element = document.querySelector<HTMLButtonElement>(id.endsWith('*') ? `[data-testid^="${id.slice(0, -1)}"]` : `[data-testid="${id}"]`);
    if (element && !element.disabled) return element;
    await pause(WAIT_STEP_MS);
  }
  return null;
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
