import type { Backend } from './backend';
import type { Clock } from './clock.svelte';
import { isFinal, panelOf, settledPanel, type Panel } from './panel';
import type { QueueStore } from './queue.svelte';
import type { SaleStore } from './sale.svelte';
import type { Trouble } from './trouble.svelte';
import type { BegunTender, CashTaken, Operation, Sale, Tender, TenderKind } from './types';

/** Longest amount that a key can make: 999,999.99, the bank's own limit. */
const AMOUNT_DIGITS_MAX = 8;

/** Paying the open sale: the choice of a tender, then what became of it. */
export class PaymentStore {
  at = $state<'closed' | 'choose' | 'operation' | 'taken'>('closed');
  kind = $state<TenderKind>('card');
  begun = $state.raw<BegunTender | null>(null);
  card = $state<string | null>(null);
  /** Minor units as typed, digit by digit; '' is the amount that is offered. */
  digits = $state('');
  /** True where the whole of the amount was chosen at once, not typed. */
  picked = $state(false);
  /** True from the first click of confirm-pay on, until the till has answered. */
  confirming = $state(false);
  operation = $state.raw<Operation | null>(null);
  taken = $state.raw<CashTaken | null>(null);
  startedAt = $state(0);

  amount = $derived(this.digits === '' ? null : Number(this.digits));
  /** What would be charged or taken now, or null where something is still to be chosen. */
  offer: number | null = $derived.by(() => {
    if (this.begun === null) return null;
    if (this.kind === 'cash') return this.amount !== null && this.amount > 0 ? this.amount : null;
    if (this.card === null) return null;
    return this.amount ?? this.begun.due;
  });
  /** Cash that does not cover what is due; the till would refuse it. */
  tooLittle = $derived(this.kind === 'cash' && this.offer !== null && this.begun !== null && this.offer < this.begun.cashDue);
  ready = $derived(this.offer !== null && this.offer > 0 && !this.tooLittle && !this.confirming);

  /** True where a part is paid: the sale can be put aside, and not be a cart again. */
  partPaid: boolean = $derived.by(() => (this.sale.current?.paid ?? 0) > 0);
  /** What is still due; null while the sale that is shown does not know of a payment that has ended. */
  rest: number | null = $derived.by(() => {
    const { operation } = this;
    const sale = this.sale.current;
    if (sale === null) return null;
    const tender = sale.tenders.find((each) => each.operation?.key === operation?.key);
    return operation !== null && isFinal(operation) && tender?.state !== operation.state ? null : sale.due;
  });

  /** The payment that the cashier was told has no answer yet. */
  #unanswered = $state.raw<string | null>(null);
  panel: Panel | null = $derived.by(() => {
    const operation = this.operation;
    if (operation === null) return null;
    const before = this.#unanswered === operation.key ? 'pay-unknown' : null;
    return settledPanel(before, panelOf(operation, this.queue.summary, this.clock.now));
  });

  /** The opening of the dialog that is waiting for its tender's id. */
  #opening: object | null = null;
  #refreshing: Promise<void> | null = null;
  /** Something changed while the till was being asked: it is asked once more. */
  #again = false;

  constructor(
    readonly backend: Backend,
    readonly trouble: Trouble,
    readonly sale: SaleStore,
    readonly queue: QueueStore,
    readonly clock: Clock,
  ) {
    sale.locked = () => this.at !== 'closed';
  }

  /** Shows a sale as it stands: its cart, its tender choice, the state of its payment or the change to give. */
  resume(sale: Sale): void {
    const operation = lastOperation(sale.tenders);
    const cash = sale.state === 'completed' ? completedInCash(sale.tenders) : null;
    if (sale.state === 'open') this.#close();
    else if (cash !== null) this.#showTaken({ sale, change: cash.change ?? 0, rounding: 0, drawer: cash.amount });
    else if (operation !== null && !(operation.state === 'approved' && sale.due > 0)) this.#showOperation(operation);
    else void this.open('card');
  }

  /** Opens the dialog. Its one tender has its id from here on, so that a late click finds the same tender. */
  async open(kind: TenderKind, exact = false): Promise<void> {
    if (this.at !== 'closed' && this.at !== 'choose') return;
    const sale = this.sale.current;
    if (sale === null || sale.lines.length === 0 || this.trouble.storage) return;
    if (this.at === 'closed') await this.#begin(kind);
    else this.choose(kind);
    if (exact) this.takeExact();
  }

  choose(kind: TenderKind): void {
    if (this.confirming) return;
    if (this.kind !== kind) this.resetAmount();
    this.kind = kind;
  }

  chooseCard(token: string): void {
    if (!this.confirming) this.card = token;
  }

  takeExact(): void {
    if (this.begun && this.kind === 'cash') this.#pick(this.begun.cashDue);
  }

  takeNote(note: number): void {
    this.#pick(note);
  }

  #pick(amount: number): void {
    this.digits = String(amount);
    this.picked = true;
  }

  type(key: string): void {
    if (this.confirming) return;
    this.picked = false;
    if (key === 'backspace') this.digits = this.digits.slice(0, -1);
    else if (this.digits.length + key.length <= AMOUNT_DIGITS_MAX) this.digits = (this.digits + key).replace(/^0+/, '');
  }

  resetAmount(): void {
    this.digits = '';
    this.picked = false;
  }

  /** What "clicking Pay" means. However often it is called, the tender makes one operation. */
  async confirm(): Promise<void> {
    const { begun, card, offer } = this;
    const sale = this.sale.current;
    if (!this.ready || begun === null || offer === null || sale === null) return;
    // Never an amount that the cashier read off another total.
    if (begun.due !== sale.due) return this.refresh();
    this.confirming = true;
    try {
      if (this.kind === 'card' && card !== null) {
        const payment = { tenderId: begun.tenderId, saleId: sale.id, amount: offer, card };
        const operation = await this.trouble.write(() => this.backend.payCard(payment));
        if (operation) this.#showOperation(operation);
      } else {
        const payment = { tenderId: begun.tenderId, saleId: sale.id, tendered: offer };
        const taken = await this.trouble.write(() => this.backend.payCash(payment));
        if (taken) {
          this.sale.show(taken.sale);
          this.#showTaken(taken);
        }
      }
    } finally {
      this.confirming = false;
    }
    await this.refresh();
  }

  /** The cashier has read that there is no answer yet: only the bank's word ends that. */
  readUnanswered(): void {
    this.#unanswered = this.operation?.key ?? null;
  }

  /** An event of the till, or an answer to having asked. */
  changed(operation: Operation): void {
    if (this.operation?.key !== operation.key) return;
    const before = this.operation;
    this.operation = this.queue.latest(operation);
    if (!isFinal(before) && isFinal(this.operation)) {
      void this.refresh();
    }
  }

  async saleChanged(saleId: string): Promise<void> {
    if (this.sale.current?.id === saleId) await this.refresh();
  }

  /** Asks the till itself, should an event have been lost. */
  async poll(): Promise<void> {
    const open = this.operation;
    if (this.at !== 'operation' || open === null) return;
    if (isFinal(open)) return this.rest === null ? this.refresh() : undefined;
    const told = await this.trouble.read(() => this.backend.operation(open.key));
    if (told) this.changed(told);
  }

  async checkNow(): Promise<void> {
    if (this.operation) await this.queue.retryNow(this.operation.key);
  }

  async otherTender(kind: TenderKind): Promise<void> {
    if (this.sale.current !== null) await this.#begin(kind);
  }

  /** Leaves the choice of a tender, or a payment that ended with nothing charged. */
  async back(): Promise<void> {
    const sale = this.sale.current;
    if (this.confirming || sale === null || this.partPaid) return;
    if (sale.state !== 'open') {
      const again = await this.trouble.write(() => this.backend.backToCart(sale.id));
      if (!again) return;
      this.sale.show(again);
    }
    this.#close();
  }

  async hold(): Promise<void> {
    const sale = this.sale.current;
    if (this.confirming || sale === null) return;
    const next = await this.trouble.write(() => this.backend.holdSale(sale.id));
    if (next) this.#moveTo(next);
    await this.queue.refreshHeld();
  }

  async resumeHeld(saleId: string): Promise<void> {
    const sale = await this.trouble.write(() => this.backend.resumeSale(saleId));
    if (sale) this.#moveTo(sale);
    await this.queue.refreshHeld();
  }

  async newSale(): Promise<void> {
    const sale = await this.trouble.write(() => this.backend.newSale());
    if (sale) this.#moveTo(sale);
  }

  /** Leaves the dialog for the sale as it is: the till knows better than what is on the screen. */
  async #reload(): Promise<void> {
    const sale = await this.sale.load();
    if (sale === null) return;
    const operation = lastOperation(sale.tenders);
    this.#close();
    if (sale.state === 'completed') this.resume(sale);
    else if (sale.state !== 'open' && operation !== null) this.#showOperation(operation);
  }

  /** Another sale is in front now. */
  show(sale: Sale): void {
    this.#moveTo(sale);
  }

  #moveTo(sale: Sale): void {
    this.sale.show(sale);
    this.#close();
    this.resume(sale);
  }

  #showOperation(operation: Operation): void {
    this.operation = this.queue.latest(operation);
    this.startedAt = Date.now();
    this.at = 'operation';
  }

  #showTaken(taken: CashTaken): void {
    this.taken = taken;
    this.at = 'taken';
  }

  #close(): void {
    this.at = 'closed';
    this.operation = null;
    this.taken = null;
    this.#freshTender();
  }

  async #begin(kind: TenderKind): Promise<void> {
    this.#freshTender();
    this.kind = kind;
    this.at = 'choose';
    const opening = {};
    this.#opening = opening;
    // An article tapped just before Pay is part of what is due.
    await this.sale.settled();
    const sale = this.sale.current;
    if (this.#opening !== opening) return;
    if (sale === null || sale.lines.length === 0) return this.#close();
    const begun = await this.trouble.read(() => this.backend.beginTender(sale.id));
    if (this.#opening !== opening) return;
    if (begun) this.begun = begun;
    // Nothing is due any more, or it is being paid: the sale itself says which.
    else await this.#reload();
  }

  #freshTender(): void {
    this.#opening = null;
    this.begun = null;
    this.card = null;
    this.resetAmount();
    this.kind = 'card';
  }

  /** Shows the sale as the till has it now. Called while the till is being asked, it asks once more after that. */
  async refresh(): Promise<void> {
    this.#again = true;
    this.#refreshing ??= this.#refreshAll();
    await this.#refreshing;
  }

  async #refreshAll(): Promise<void> {
    try {
      while (this.#again) {
        this.#again = false;
        await this.#refreshOnce();
      }
    } finally {
      this.#refreshing = null;
    }
  }

  async #refreshOnce(): Promise<void> {
    await this.sale.settled();
    const shown = this.sale.shown;
    const front = this.sale.current;
    if (front === null) return;
    const sale = await this.sale.read();
    if (this.sale.shown !== shown) this.#again = true;
    if (sale === null) return;
    const beingPaid = sale.state === 'completed' || sale.tenders.some((tender) => tender.state === 'settling');
    const elsewhere = sale.id !== front.id || (this.at === 'closed' && sale.state !== 'open') || (this.at === 'choose' && beingPaid);
    if (elsewhere) return this.#moveTo(sale);
    this.sale.show(sale);
    const { begun } = this;
    if (this.at === 'choose' && !this.confirming && begun !== null && begun.due !== sale.due) void this.#begin(this.kind);
  }
}

/** The cash that made a completed sale complete, where it was cash. */
function completedInCash(tenders: Tender[]): Tender | null {
  const last = tenders.findLast(({ state }) => state === 'taken' || state === 'approved');
  return last?.kind === 'cash' ? last : null;
}

/** The operation of the newest card tender, which is the one that the cashier waits for. */
function lastOperation(tenders: Tender[]): Operation | null {
  return tenders.findLast((tender) => tender.operation !== null)?.operation ?? null;
}
