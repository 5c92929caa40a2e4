// A till and a bank in memory, for component tests and for looking at the window in a browser. It
// keeps the contract's promises (one operation for one tender, a frozen sale, final results that
// stay) and lets the caller script what the bank says.

import type { Backend, TillEvents } from './backend';
import { demoArticles, demoCategories } from './memory-catalogue';
import { cards, receiptOf, sum, summaryOf } from './memory-figures';
import { MemoryLab } from './memory-lab';
import { MemoryPay } from './memory-pay';
import { MemoryPeople, type MemoryPerson } from './memory-people';
import { priceSale } from './memory-pricing';
import { decimalsOf } from './money';
import { fromThousandths, toThousandths } from './quantity';
import type {
  AppInfo,
  Article,
  Asked,
  CommandError,
  ErrorCode,
  LabFaultRule,
  LabState,
  Operation,
  OperationState,
  Person,
  PinEntry,
  Printed,
  Receipt,
  Sale,
  Session,
  Summary,
  Tender,
  TimelineEntry,
} from './types';

/** What the bank does with a payment; `manual` leaves every step to `settle`. */
export type BankScript = 'by-card' | 'manual' | 'silent' | 'refused' | 'in-progress';

export type MemoryOptions = {
  currency?: string;
  bank?: BankScript;
  answerAfterMs?: number;
  articles?: Article[];
  /** Codes that a scanner reads, with the SKU of each. */
  barcodes?: Record<string, string>;
  people?: MemoryPerson[];
};

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

function refuse(code: ErrorCode, message: string): CommandError {
  return { code, message, retryable: code === 'storage', details: null };
}

function lineOf(sale: Sale, id: string): Sale['lines'][number] {
  const line = sale.lines.find((each) => each.id === id);
  if (!line) throw refuse('not-found', id);
  return line;
}

/** With the bank, and nobody took the risk of it. */
function isBeingPaid(sale: Sale): boolean {
  return sale.tenders.some(({ state, takenOfflineAt }) => state === 'settling' && takenOfflineAt === null);
}

export class MemoryBackend implements Backend {
  /** How often a command was called, and how many operations `payCard` made. */
  readonly counts = { payCard: 0, effects: 0, retryNow: 0, openSale: 0 };
  /** While set, every command that writes something fails with it. */
  storageFault: string | null = null;
  readonly currency: string;
  /** The lab of the bundled bank; with `bundled` off the till asks a bank of its own. */
  readonly lab = new MemoryLab();
  bundled = true;
  /** Who stands at the till; nobody is known where there are no people. */
  who: Session = { locked: false, person: null };
  closed = false;
  refuseClose: ErrorCode | null = null;

  #bank: BankScript;
  #answerAfterMs: number;
  #articles: Article[];
  #sales = new Map<string, Sale>();
  #open: string | null = null;
  #held: string[] = [];
  #operations = new Map<string, Operation>();
  #byTender = new Map<string, string>();
  #tenderOfKey = new Map<string, string>();
  #cardOfKey = new Map<string, string>();
  #timelines = new Map<string, TimelineEntry[]>();
  #listeners = new Set<TillEvents>();
  #next = 1;
  #receipt = 1041;
  #paused: string | null = null;
  #barcodes: Record<string, string>;
  /** What undo takes back, of each sale. */
  #changes = new Map<string, { what: string; lines: Sale['lines']; discountAsked: Asked | null }[]>();
  readonly staff: MemoryPeople;
  /** While set, every print fails with it. */
  printerFault: ErrorCode | null = null;
  #prints = new Map<string, number>();

  /** Offline, late declines, giving up, printing. */
  readonly pay = new MemoryPay({
    sale: (id) => this.#sale(id),
    sales: () => [...this.#sales.values()],
    operation: (key) => this.#operations.get(key) ?? this.#missing(key),
    save: () => this.#save(),
    allow: (right, approval) => this.staff.allow(right, false, approval),
    id: (kind) => this.#id(kind),
    copy: (sale) => this.#copy(sale),
    refuse,
    settle: (key, change, event, detail) => this.settle(key, change, event, detail),
    payByCard: (sale, tender, card, kind) => this.#payByCard(sale, tender, card, kind),
    begin: (due) => this.#beginTender(due),
    payCash: (payment) => this.payCash(payment),
    complete: (sale) => this.#complete(sale),
    tellSale: (saleId) => this.tellSale(saleId),
  });
  readonly offlineAsk = this.pay.offlineAsk.bind(this.pay);
  readonly takeOffline = this.pay.takeOffline.bind(this.pay);
  readonly cancel = this.pay.cancel.bind(this.pay);
  readonly beginCashInstead = this.pay.beginCashInstead.bind(this.pay);
  readonly payCashInstead = this.pay.payCashInstead.bind(this.pay);
  readonly lateDeclines = this.pay.lateDeclines.bind(this.pay);
  readonly beginCollecting = this.pay.beginCollecting.bind(this.pay);
  readonly collectAgain = this.pay.collectAgain.bind(this.pay);
  readonly collectInCash = this.pay.collectInCash.bind(this.pay);
  readonly writeOff = this.pay.writeOff.bind(this.pay);
  readonly beginVoid = this.pay.beginVoid.bind(this.pay);
  readonly voidSale = this.pay.voidSale.bind(this.pay);
  readonly saleOf = this.pay.saleOf.bind(this.pay);

  constructor(options: MemoryOptions = {}) {
    this.currency = options.currency ?? 'EUR';
    this.#bank = options.bank ?? 'by-card';
    this.#answerAfterMs = options.answerAfterMs ?? 900;
    this.#articles = options.articles ?? demoArticles;
    this.#barcodes = options.barcodes ?? {};
    this.staff = new MemoryPeople(options.people);
  }

  // --- what a test or a demo scripts ---

  get bank(): BankScript {
    return this.#bank;
  }

  set bank(script: BankScript) {
    this.#bank = script;
  }

  set paused(reason: string | null) {
    this.#paused = reason;
    this.#tellSummary();
  }

  /** The operations made so far, newest first. */
  get made(): Operation[] {
    return [...this.#operations.values()].reverse();
  }

  /** Tells the window that a sale changed. */
  tellSale(saleId: string): void {
    this.#listeners.forEach((each) => each.saleChanged({ saleId }));
  }

  /** Puts a held sale out of sight. */
  forget(saleId: string): void {
    this.#held = this.#held.filter((id) => id !== saleId);
  }

  /** Brings an operation to a state, as the outbox would, and tells the window. */
  settle(key: string, change: Partial<Operation>, event = 'answer', detail = ''): void {
    const known = this.#operations.get(key);
    if (!known) throw new Error(`no operation ${key}`);
    const now = new Date(Date.now()).toISOString();
    const operation: Operation = { ...known, updatedAt: now, ...change };
    this.#operations.set(key, operation);
    this.#timelines.get(key)?.push({ at: now, attempt: operation.attempts, event, detail });
    this.#settleTender(operation);
    const told = this.#operations.get(key) as Operation;
    this.#listeners.forEach((each) => each.operationChanged({ ...told }));
    this.tellSale(told.saleId);
    this.#tellSummary();
  }

  // --- the contract ---

  async appInfo(): Promise<AppInfo> {
    return {
      version: '0.1.0',
      dataDir: '/home/kassa/.local/share/kassa',
      currency: this.currency,
      decimals: decimalsOf(this.currency),
      cashStep: 1,
      bank: { bundled: this.bundled, address: this.bundled ? 'http://127.0.0.1:8460' : 'https://bank.example' },
      testCards: [
        { token: 'tok_visa', label: 'Visa ·· 4242', outcome: 'approves' },
        { token: 'tok_mastercard', label: 'Mastercard ·· 4444', outcome: 'approves' },
        { token: 'tok_mir', label: 'Mir ·· 2200', outcome: 'approves' },
        { token: 'tok_account_1', label: 'Account 1 ·· 0001', outcome: 'account' },
        { token: 'tok_insufficient_funds', label: 'No funds ·· 9995', outcome: 'declines' },
        { token: 'tok_expired', label: 'Expired ·· 0069', outcome: 'declines' },
        { token: 'tok_lost', label: 'Lost ·· 9987', outcome: 'declines' },
        { token: 'tok_do_not_honor', label: 'Refused ·· 0002', outcome: 'declines' },
      ],
    };
  }

  async categories() {
    return demoCategories;
  }

  async articles({ text, category }: { text: string; category: string | null }) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.#articles.filter(
      (article) =>
        (category === null || article.category === category) &&
        words.every((word) => `${article.name} ${article.sku} ${this.#codesOf(article.sku)}`.toLowerCase().includes(word)),
    );
    found.sort((a, b) => Number(b.favourite) - Number(a.favourite));
    return { articles: found.slice(0, 200), more: found.length > 200 };
  }

  async openSale(): Promise<Sale> {
    this.counts.openSale += 1;
    return this.#copy(this.#openSale());
  }

  async addArticle(code: string, quantity: string | null): Promise<Sale> {
    const article = this.#articleOf(code);
    if (article.openPrice) throw refuse('price-needed', article.name);
    return this.#add(article, quantity, article.price);
  }

  async addAtPrice(code: string, quantity: string | null, price: number): Promise<Sale> {
    const article = this.#articleOf(code);
    if (!article.openPrice) throw refuse('invalid-price', `${article.name} has a price`);
    return this.#add(article, quantity, price);
  }

  async setQuantity(lineId: string, quantity: string): Promise<Sale> {
    const thousandths = toThousandths(quantity);
    if (thousandths === null || thousandths === 0n) throw refuse('invalid-quantity', quantity);
    return this.#edit('quantity-changed', (sale) => {
      const line = lineOf(sale, lineId);
      if (line.unit === 'piece' && thousandths % 1000n !== 0n) throw refuse('invalid-quantity', quantity);
      line.quantity = fromThousandths(thousandths);
    });
  }

  async setPrice(lineId: string, price: number, approval?: PinEntry | null): Promise<Sale> {
    if (price < 0 || price > 99_999_999) throw refuse('invalid-price', String(price));
    return this.#edit('price-changed', (sale) => {
      const line = lineOf(sale, lineId);
      const list = line.listPrice ?? line.unitPrice;
      if (price !== list) this.staff.allow('price_override', true, approval);
      line.unitPrice = price;
      line.listPrice = price === list ? null : list;
    });
  }

  async discountLine(lineId: string, discount: Asked | null, approval?: PinEntry | null): Promise<Sale> {
    return this.#edit('line-discounted', (sale) => {
      const line = lineOf(sale, lineId);
      this.#checkDiscount(discount, approval);
      line.discountAsked = discount;
    });
  }

  async discountSale(saleId: string, discount: Asked | null, approval?: PinEntry | null): Promise<Sale> {
    if (saleId !== this.#openSale().id) throw refuse('sale-changed', saleId);
    return this.#edit('sale-discounted', (sale) => {
      this.#checkDiscount(discount, approval);
      sale.discountAsked = discount;
    });
  }

  async setNote(lineId: string, note: string): Promise<Sale> {
    if (note.length > 200 || /\d{13,}/.test(note)) throw refuse('invalid-text', 'the note');
    return this.#edit('note-changed', (sale) => {
      lineOf(sale, lineId).note = note.trim() || null;
    });
  }

  async removeLine(lineId: string, approval?: PinEntry | null): Promise<Sale> {
    return this.#edit('line-removed', (sale) => {
      lineOf(sale, lineId);
      if (sale.lines.length === 1) this.staff.allow('drop_sale', true, approval);
      sale.lines = sale.lines.filter((each) => each.id !== lineId);
    });
  }

  async clearSale(approval?: PinEntry | null): Promise<Sale> {
    return this.#edit('sale-cleared', (sale) => {
      this.staff.allow('drop_sale', true, approval);
      sale.lines = [];
      sale.discountAsked = null;
    });
  }

  async undo(saleId: string): Promise<Sale> {
    const sale = this.#sale(saleId);
    const change = this.#changes.get(saleId)?.at(-1);
    if (!change) throw refuse('nothing-to-undo', saleId);
    this.#editable(sale);
    this.#changes.get(saleId)?.pop();
    sale.lines = change.lines;
    sale.discountAsked = change.discountAsked;
    return this.#priced(sale);
  }

  async parkSale(saleId: string, name: string): Promise<Sale> {
    const sale = this.#sale(saleId);
    if (name.trim() === '' || name.length > 64) throw refuse('invalid-text', 'the name');
    if (sale.lines.length === 0) throw refuse('sale-changed', 'empty');
    this.#editable(sale);
    sale.name = name.trim();
    this.#held.push(saleId);
    this.#open = null;
    this.tellSale(saleId);
    return this.#tellOf(this.#openSale());
  }

  async dropSale(saleId: string, approval?: PinEntry | null): Promise<Sale> {
    const sale = this.#sale(saleId);
    if (sale.state !== 'open') throw refuse('sale-frozen', saleId);
    this.staff.allow('drop_sale', true, approval);
    this.#save();
    sale.state = 'dropped';
    this.forget(saleId);
    if (this.#open === saleId) this.#open = null;
    this.tellSale(saleId);
    return this.#tellOf(this.#openSale());
  }

  async printReceipt(saleId: string): Promise<Printed> {
    this.#sale(saleId);
    if (this.printerFault !== null) throw refuse(this.printerFault, 'printer');
    const print = (this.#prints.get(saleId) ?? 0) + 1;
    this.#prints.set(saleId, print);
    return { print, copy: print - 1 };
  }

  async people(): Promise<Person[]> {
    return this.staff.list();
  }

  async logIn(entry: PinEntry): Promise<Session> {
    return this.staff.logIn(entry);
  }

  async newSale(): Promise<Sale> {
    // One that is not completed is given back: nothing is written.
    if (this.#front()?.state === 'completed') {
      this.#save();
      this.#open = null;
    }
    return this.#tellOf(this.#openSale());
  }

  async beginTender(saleId: string) {
    const sale = this.#sale(saleId);
    return this.#beginTender(sale.due);
  }

  async payCard(payment: { tenderId: string; saleId: string; amount: number; card: string }): Promise<Operation> {
    this.counts.payCard += 1;
    const known = this.#byTender.get(payment.tenderId);
    if (known !== undefined) {
      const operation = this.#operations.get(known) as Operation;
      if (operation.amount !== payment.amount) throw refuse('intent-reused', payment.tenderId);
      return { ...operation };
    }
    const sale = this.#sale(payment.saleId);
    if (isBeingPaid(sale)) throw refuse('sale-frozen', sale.id);
    if (payment.amount <= 0) throw refuse('invalid-amount', String(payment.amount));
    if (payment.amount > sale.due) throw refuse('over-due', String(payment.amount));
    this.#save();
    this.counts.effects += 1;
    sale.number ??= this.#next++;
    sale.state = 'paying';
    const tender: Tender = {
      id: payment.tenderId,
      kind: 'card',
      amount: payment.amount,
      tendered: null,
      change: null,
      state: 'settling',
      replaces: null,
      takenOfflineAt: null,
      operation: null,
    };
    return this.#payByCard(sale, tender, payment.card, 'payment');
  }

  #payByCard(sale: Sale, tender: Tender, card: string, kind: Operation['kind']): Operation {
    const operation = this.#newOperation(sale, tender.amount, card, kind);
    this.#byTender.set(tender.id, operation.key);
    this.#tenderOfKey.set(operation.key, tender.id);
    if (kind === 'payment') sale.tenders.push({ ...tender, operation });
    this.tellSale(sale.id);
    this.#tellSummary();
    this.#runBank(operation.key, card);
    return { ...operation };
  }

  #beginTender(due: number) {
    const tenderId = this.#id('tender');
    const notes = [500, 1000, 2000, 5000, 10_000, 20_000];
    const above = (step: number) => Number((BigInt(due) + BigInt(step) - 1n) / BigInt(step)) * step;
    const cashNotes = [...new Set([due, above(100), ...notes.map(above)])].sort((a, b) => a - b).slice(0, 4);
    return { tenderId, due, cashDue: due, cashNotes, rounding: 0 };
  }

  #missing(key: string): never {
    throw refuse('not-found', key);
  }

  async payCash(payment: { tenderId: string; saleId: string; tendered: number }) {
    const sale = this.#sale(payment.saleId);
    if (isBeingPaid(sale)) throw refuse('sale-frozen', sale.id);
    if (payment.tendered <= 0) throw refuse('invalid-amount', String(payment.tendered));
    this.#save();
    sale.number ??= this.#next++;
    sale.state = 'paying';
    const drawer = Math.min(payment.tendered, sale.due);
    const change = payment.tendered - drawer;
    sale.tenders.push({
      id: payment.tenderId,
      kind: 'cash',
      amount: drawer,
      tendered: payment.tendered,
      change,
      state: 'taken',
      replaces: null,
      takenOfflineAt: null,
      operation: null,
    });
    sale.paid += drawer;
    sale.due -= drawer;
    if (sale.due === 0) this.#complete(sale);
    else this.tellSale(sale.id);
    return { sale: this.#copy(sale), change, rounding: 0, drawer };
  }

  async backToCart(saleId: string): Promise<Sale> {
    const sale = this.#sale(saleId);
    if (sale.paid > 0 || sale.tenders.some((tender) => tender.state === 'settling' || tender.state === 'needs_attention'))
      throw refuse('sale-frozen', saleId);
    this.#save();
    sale.state = 'open';
    return this.#tellOf(sale);
  }

  async holdSale(saleId: string): Promise<Sale> {
    this.#save();
    const sale = this.#sale(saleId);
    if (sale.state !== 'completed') this.#held.push(saleId);
    this.#open = null;
    this.tellSale(saleId);
    return this.#tellOf(this.#openSale());
  }

  async heldSales(): Promise<Sale[]> {
    return this.#held.map((id) => this.#copy(this.#sale(id)));
  }

  async resumeSale(saleId: string): Promise<Sale> {
    // It was never put aside: nothing is written.
    if (!this.#held.includes(saleId)) return this.#copy(this.#sale(saleId));
    this.#save();
    const open = this.#open === null ? null : this.#sale(this.#open);
    if (open && (open.lines.length > 0 || open.state === 'paying')) this.#held.push(open.id);
    this.#held = this.#held.filter((id) => id !== saleId);
    this.#open = saleId;
    return this.#tellOf(this.#sale(saleId));
  }

  async receipt(saleId: string): Promise<Receipt> {
    return { ...receiptOf(this.#copy(this.#sale(saleId))), printed: this.#prints.get(saleId) ?? 0 };
  }

  async operation(key: string): Promise<Operation> {
    const operation = this.#operations.get(key);
    if (!operation) throw refuse('not-found', key);
    return { ...operation };
  }

  async operations({ state, before, limit }: { state: OperationState | null; before: number | null; limit: number }) {
    const found = this.made.filter((each) => (state === null || each.state === state) && (before === null || each.seq < before));
    return { operations: found.slice(0, limit).map((each) => ({ ...each })), more: found.length > limit };
  }

  async timeline(key: string): Promise<TimelineEntry[]> {
    return [...(this.#timelines.get(key) ?? [])];
  }

  async retryNow(key: string | null): Promise<void> {
    this.counts.retryNow += 1;
    for (const operation of this.#operations.values()) {
      if ((key === null || key === operation.key) && (operation.state === 'unknown' || operation.state === 'saved' || operation.lastAnswer === 'in-progress'))
        this.#runBank(operation.key, this.#cardOfKey.get(operation.key) ?? 'tok_visa');
    }
  }

  async summary(): Promise<Summary> {
    return this.#summary();
  }

  async probeStorage(): Promise<void> {
    this.#save();
  }

  async session(): Promise<Session> {
    const known = this.staff.session();
    return known.locked || known.person ? known : this.who;
  }

  async lock(): Promise<Session> {
    this.#save();
    this.staff.lock();
    if (this.who.person) this.who = { locked: true, person: null };
    return this.session();
  }

  async closeAnyway(): Promise<void> {
    if (this.refuseClose !== null) throw refuse(this.refuseClose, 'the window did not close');
    this.closed = true;
  }

  tellSession(): void {
    this.#listeners.forEach((each) => each.sessionChanged());
  }

  tellBacklog(backlog: Summary['backlog']): void {
    this.#listeners.forEach((each) => each.summaryChanged({ ...this.#summary(), backlog }));
  }

  /** As the shell does: somebody wants to close, and payments are not settled. */
  askToClose(): void {
    const { unsettled, amounts } = this.#summary();
    this.#listeners.forEach((each) => each.closeRequested({ unsettled, amounts }));
  }

  async labState(): Promise<LabState> {
    this.#labOnly();
    return this.lab.state(this.made);
  }

  async labSetFaults(faults: LabFaultRule[]): Promise<void> {
    this.#labOnly();
    if (!this.lab.running) throw refuse('lab-refused', 'the bank is stopped: start it first');
    this.lab.set(faults);
  }

  async labClear(): Promise<void> {
    this.#labOnly();
    this.lab.clear();
    await this.retryNow(null);
  }

  async labDrain(): Promise<void> {
    this.#labOnly();
    if (!this.lab.running) throw refuse('lab-refused', 'the bank is stopped: start it first');
    this.lab.counts.drain += 1;
  }

  async labBankStop(): Promise<void> {
    this.#labOnly();
    this.lab.stop();
  }

  async labBankStart(): Promise<void> {
    this.#labOnly();
    this.lab.start();
  }

  async listen(handlers: TillEvents): Promise<() => void> {
    this.#listeners.add(handlers);
    return () => this.#listeners.delete(handlers);
  }

  // --- inside ---

  #id(of: string): string {
    return `${of}-${this.#next++}`;
  }

  #labOnly(): void {
    if (!this.bundled) throw refuse('no-lab', 'the till asks a bank of its own');
  }

  #save(): void {
    if (this.storageFault !== null) throw refuse('storage', this.storageFault);
  }

  #sale(id: string): Sale {
    const sale = this.#sales.get(id);
    if (!sale) throw refuse('not-found', id);
    return sale;
  }

  #front(): Sale | undefined {
    const front = this.#open === null ? undefined : this.#sales.get(this.#open);
    return front?.state === 'voided' ? undefined : front;
  }

  /** The sale in front. A completed one stays there until `newSale`: somebody must have seen that it is paid. */
  #openSale(): Sale {
    const known = this.#front();
    if (known) return known;
    const sale: Sale = {
      id: this.#id('sale'),
      number: null,
      state: 'open',
      held: false,
      name: null,
      lines: [],
      taxes: [],
      net: 0,
      tax: 0,
      tip: 0,
      tipAsked: null,
      discount: 0,
      discountAsked: null,
      total: 0,
      paid: 0,
      due: 0,
      waived: 0,
      rounding: 0,
      currency: this.currency,
      tenders: [],
      receiptNumber: null,
      undo: null,
      createdAt: new Date(Date.now()).toISOString(),
      completedAt: null,
    };
    this.#sales.set(sale.id, sale);
    this.#open = sale.id;
    this.tellSale(sale.id);
    return sale;
  }

  /** Tells that a sale changed, as the till does after every command but those that only read. */
  #tellOf(sale: Sale): Sale {
    this.tellSale(sale.id);
    return this.#copy(sale);
  }

  #copy(sale: Sale): Sale {
    const tenders = sale.tenders.map((tender) => ({
      ...tender,
      operation: tender.operation && { ...(this.#operations.get(tender.operation.key) as Operation) },
    }));
    const held = this.#held.includes(sale.id) || (sale.state === 'completed' && sale.id !== this.#open);
    return structuredClone({ ...sale, held, tenders });
  }

  #codesOf(sku: string): string {
    return Object.keys(this.#barcodes).filter((code) => this.#barcodes[code] === sku).join(' ');
  }

  #articleOf(code: string): Article {
    const sku = this.#barcodes[code] ?? code;
    const article = this.#articles.find((each) => each.sku === sku);
    if (!article) throw refuse('unknown-article', code);
    return article;
  }

  #add(article: Article, quantity: string | null, price: number): Sale {
    const more = toThousandths(quantity ?? '1');
    if (more === null || more === 0n || (article.unit === 'piece' && more % 1000n !== 0n)) throw refuse('invalid-quantity', String(quantity));
    const { sku, name, unit, taxRate } = article;
    return this.#edit('article-added', (sale) => {
      const same = (each: Sale['lines'][number]) => each.sku === sku && each.unit === 'piece' && each.origin === 'article' && each.listPrice === null;
      const line = article.openPrice ? undefined : sale.lines.find(same);
      if (line) {
        line.quantity = fromThousandths((toThousandths(line.quantity) ?? 0n) + more);
        return;
      }
      const figures = { gross: 0, discount: 0, saleDiscount: 0, total: 0 };
      const own = { discountAsked: null, listPrice: null, note: null, origin: article.openPrice ? ('open_price' as const) : ('article' as const) };
      sale.lines.push({ id: this.#id('line'), position: 0, sku, name, unit, unitPrice: price, quantity: fromThousandths(more), taxRate, ...figures, ...own });
    });
  }

  #checkDiscount(discount: Asked | null, approval: PinEntry | null | undefined): void {
    if (discount === null) return;
    const { percent, amount } = this.staff.discountMax;
    const asked = discount.percent === undefined ? null : (toThousandths(discount.percent) ?? 100_001n);
    if (asked !== null && asked > 100_000n) throw refuse('invalid-discount', 'at most 100 percent');
    const within = asked === null ? (discount.amount ?? 0) <= amount : asked <= BigInt(percent) * 1000n;
    this.staff.allow('discount', within, approval);
  }

  #editable(sale: Sale): void {
    this.staff.acting();
    if (sale.state !== 'open') throw refuse(sale.state === 'completed' ? 'sale-changed' : 'sale-frozen', sale.id);
    this.#save();
  }

  #edit(what: string, change: (sale: Sale) => void): Sale {
    const sale = this.#openSale();
    this.#editable(sale);
    const before = { what, lines: structuredClone(sale.lines), discountAsked: sale.discountAsked };
    change(sale);
    this.#changes.set(sale.id, [...(this.#changes.get(sale.id) ?? []), before]);
    return this.#priced(sale);
  }

  #priced(sale: Sale): Sale {
    priceSale(sale);
    sale.undo = this.#changes.get(sale.id)?.at(-1)?.what ?? null;
    return this.#tellOf(sale);
  }

  #newOperation(sale: Sale, amount: number, card: string, kind: Operation['kind']): Operation {
    const seq = this.#operations.size + 1;
    const now = new Date(Date.now()).toISOString();
    const key = crypto.randomUUID();
    const digits = Array.from(key.replaceAll('-', '').slice(0, 4), (digit, at) => (parseInt(digit, 16) * 2 + at + seq) % 32);
    const operation: Operation = {
      seq,
      key,
      shortCode: digits.map((digit) => CROCKFORD[digit]).join(''),
      kind,
      state: 'saved',
      amount,
      currency: this.currency,
      attempts: 0,
      createdAt: now,
      updatedAt: now,
      dueAt: now,
      notBefore: null,
      acceptedOffline: false,
      cancelWished: false,
      reason: null,
      saleId: sale.id,
      saleNumber: sale.number,
      receiptNumber: sale.receiptNumber,
      reference: sale.number === null ? null : `till-1/${sale.number}`,
      bankReference: null,
      approvalCode: null,
      declineCode: null,
      cardBrand: cards[card]?.brand ?? null,
      last4: cards[card]?.last4 ?? null,
      lastAnswer: null,
    };
    this.#operations.set(key, operation);
    this.#cardOfKey.set(key, card);
    this.#timelines.set(key, [{ at: now, attempt: 0, event: 'saved', detail: '' }]);
    return operation;
  }

  #runBank(key: string, card: string): void {
    if (this.#bank === 'manual') return;
    const script = this.#bank;
    const attempts = (this.#operations.get(key)?.attempts ?? 0) + 1;
    setTimeout(() => this.settle(key, { state: 'sending', attempts }, 'sent', 'POST /v1/payments'), Math.min(30, this.#answerAfterMs / 2));
    setTimeout(() => {
      const met = this.lab.meet(key);
      if (met) return this.settle(key, met.outcome, met.event, met.detail);
      const due = new Date(Date.now() + 8000).toISOString();
      const declines = cards[card] === undefined ? 'unknown_card' : cards[card].declines;
      if (script === 'silent') this.settle(key, { state: 'unknown', lastAnswer: 'time-out', dueAt: due }, 'answer', 'time-out');
      else if (script === 'refused')
        this.settle(key, { state: 'saved', lastAnswer: 'no-connection', dueAt: due }, 'answer', 'no-connection');
      else if (script === 'in-progress') this.settle(key, { lastAnswer: 'in-progress' }, 'answer', '409 in-progress');
      else if (declines !== undefined) this.settle(key, { state: 'declined', declineCode: declines }, 'result', `402 ${declines}`);
      else this.settle(key, { state: 'approved', approvalCode: '8F21K0' }, 'result', '201 approved');
    }, this.#answerAfterMs);
  }

  #settleTender(operation: Operation): void {
    const sale = this.#sales.get(operation.saleId);
    const tender: Tender | undefined = sale?.tenders.find((each) => each.id === this.#tenderOfKey.get(operation.key));
    if (!sale || !tender || tender.state === 'approved') return;
    const covered = tender.takenOfflineAt !== null || sale.state === 'completed';
    if (operation.state === 'approved') {
      tender.state = 'approved';
      sale.paid += tender.amount;
      if (!covered) sale.due -= tender.amount;
      if (sale.due === 0 && sale.state === 'paying') this.#complete(sale);
    } else if (operation.state === 'declined' || operation.state === 'cancelled' || operation.state === 'needs_attention') {
      tender.state = operation.state;
      if (tender.takenOfflineAt !== null && sale.state === 'paying') sale.due += tender.amount;
    }
    this.pay.settled(sale, tender, operation);
  }

  #complete(sale: Sale): void {
    sale.state = 'completed';
    sale.paid = sum(sale.tenders.filter(({ state }) => state === 'approved' || state === 'taken').map(({ amount }) => amount));
    sale.due = 0;
    sale.receiptNumber = ++this.#receipt;
    sale.completedAt = new Date(Date.now()).toISOString();
    for (const tender of sale.tenders) {
      const operation = tender.operation && this.#operations.get(tender.operation.key);
      if (operation) this.#operations.set(operation.key, { ...operation, receiptNumber: sale.receiptNumber });
    }
    this.#held = this.#held.filter((id) => id !== sale.id);
    this.tellSale(sale.id);
  }

  #summary(): Summary {
    return summaryOf([...this.#operations.values()], this.currency, this.#paused);
  }

  #tellSummary(): void {
    const summary = this.#summary();
    this.#listeners.forEach((each) => each.summaryChanged(summary));
  }
}
