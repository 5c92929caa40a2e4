import type { Approve } from './approval';
import type { Backend } from './backend';
import type { Clock } from './clock.svelte';
import { OfflineStore } from './offline.svelte';
import { askedPanel, isFinal, isOpen, panelOf, settledPanel, type Panel } from './panel';
import type { QueueStore } from './queue.svelte';
import type { SaleStore } from './sale.svelte';
import { completedInCash, isAwaited, isPartPaid, lastOperation, pays } from './tenders';
import type { Trouble } from './trouble.svelte';
import type { BegunTender, CardPayment, CashPayment, CashTaken, Operation, Sale, Tender, TenderKind } from './types';

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
  /** Cash that does not cover what is due was chosen to pay a part of it. */
  part = $state(false);
  /** The card payment in whose place cash is being taken. */
  instead = $state<string | null>(null);
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
  /** Cash that does not cover what is due. */
  tooLittle = $derived(this.kind === 'cash' && this.offer !== null && this.begun !== null && this.offer < this.begun.cashDue);
  /** The card payment whose place cash is to take is being sent at this moment: it may become charged. */
  bankAsked = $derived(this.instead !== null && this.operation?.state !== 'saved');
  ready = $derived(
    this.offer !== null && this.offer > 0 && (!this.tooLittle || this.part) && !this.bankAsked && !this.confirming,
  );

  /** True where a part is paid: the sale can be put aside, and not be a cart again. */
  partPaid: boolean = $derived.by(() => isPartPaid(this.sale.current));
  /** What is still due; null while the sale that is shown does not know of a payment that has ended. */
  rest: number | null = $derived.by(() => {
    const { operation } = this;
    const sale = this.sale.current;
    if (sale === null) return null;
    const tender = this.tender;
    if (operation?.acceptedOffline && tender?.takenOfflineAt == null) return null;
    return operation !== null && isFinal(operation) && tender?.state !== operation.state ? null : sale.due;
  });
  /** The tender of the payment that is shown. */
  tender: Tender | null = $derived.by(
    () => this.sale.current?.tenders.find((each) => each.operation?.key === this.operation?.key) ?? null,
  );

  /** The payment that the cashier was told has no answer yet. */
  #unanswered = $state.raw<string | null>(null);
  panel: Panel | null = $derived.by(() => {
    const operation = this.operation;
    if (operation === null) return null;
    const before = this.#unanswered === operation.key ? 'pay-unknown' : null;
    const panel = settledPanel(before, panelOf(operation, this.queue.summary, this.clock.now));
    return askedPanel(panel, operation.cancelWished ? null : this.offline.ask);
  });
  /** The cancelled payment of which the till knows that it never left. */
  #unsent = $state.raw<string | null>(null);
  neverSent = $derived(this.operation !== null && (this.#unsent === this.operation.key || this.operation.attempts === 0));
  /** True while the bank is asked to cancel what it may have charged. */
  cancelling = $state(false);

  readonly offline: OfflineStore;

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
    readonly approve: Approve,
  ) {
    this.offline = new OfflineStore(backend, trouble, approve);
    sale.locked = () => this.at !== 'closed';
  }

  /** Shows a sale as it stands: its cart, its tender choice, the state of its payment or the change to give. */
  resume(sale: Sale): void {
    const operation = lastOperation(sale.tenders);
    const cash = sale.state === 'completed' ? completedInCash(sale.tenders) : null;
    if (sale.state === 'open') this.#close();
    else if (cash !== null) this.#showTaken({ sale, change: cash.change ?? 0, rounding: sale.rounding, drawer: cash.amount });
    else if (operation !== null && !(pays(operation) && sale.due > 0)) this.#showOperation(operation);
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
    if (this.confirming || (this.instead !== null && kind === 'card')) return;
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
    this.part = false;
  }

  /** Said with a press of its own: a digit too few must not become a part payment. */
  takePart(): void {
    if (this.tooLittle && !this.confirming) this.part = true;
  }

  type(key: string): void {
    if (this.confirming) return;
    this.picked = false;
    this.part = false;
    if (key === 'backspace') this.digits = this.digits.slice(0, -1);
    else if (this.digits.length + key.length <= AMOUNT_DIGITS_MAX) this.digits = (this.digits + key).replace(/^0+/, '');
  }

  resetAmount(): void {
    this.digits = '';
    this.picked = false;
    this.part = false;
  }

  /** What "clicking Pay" means. However often it is called, the tender makes one operation. */
  async confirm(): Promise<void> {
    const { begun, card, offer } = this;
    const sale = this.sale.current;
    if (!this.ready || begun === null || offer === null || sale === null) return;
    // Never an amount that the cashier read off another total.
    if (this.instead === null && begun.due !== sale.due) return this.refresh();
    const { tenderId } = begun;
    this.confirming = true;
    try {
      if (this.kind === 'card' && card !== null) await this.#confirmCard({ tenderId, saleId: sale.id, amount: offer, card });
      else await this.#confirmCash({ tenderId, saleId: sale.id, tendered: offer });
    } finally {
      this.confirming = false;
    }
    await this.refresh();
  }

  async #confirmCard(payment: CardPayment): Promise<void> {
    const operation = await this.approve((approval) => this.backend.payCard(payment, approval));
    if (operation) this.#showOperation(operation);
  }

  async #confirmCash(payment: CashPayment): Promise<void> {
    const { instead } = this;
    const taken = await this.approve((approval) =>
      instead === null ? this.backend.payCash(payment, approval) : this.backend.payCashInstead(payment, instead, approval),
    );
    if (taken === null) return;
    this.sale.show(taken.sale);
    if (taken.sale.state === 'completed') this.#showTaken(taken);
    // A part: the rest has a tender of its own.
    else void this.#begin('card');
  }

  /** The cashier has read that there is no answer yet: only the bank's word ends that. */
  readUnanswered(): void {
    this.#unanswered = this.operation?.key ?? null;
  }

  /** An event of the till, or an answer to having asked. */
  changed(operation: Operation): void {
    if (this.operation?.key !== operation.key) return;
    const before = this.operation;
    const told = this.queue.latest(operation);
    this.operation = told;
    void this.#learnUnsent(told);
    // Cash in its place is possible only while it was never sent.
    if (this.instead !== null && !(told.state === 'saved' || told.state === 'sending')) this.#leaveInstead();
    if (isOpen(told)) void this.offline.look();
    else this.offline.close();
    if (!isFinal(before) && isFinal(told)) void this.refresh();
  }

  /** Of a cancelled payment: whether the till itself cancelled it, before it ever left. */
  async #learnUnsent({ key, state }: Operation): Promise<void> {
    if (state !== 'cancelled' || this.#unsent === key) return;
    const timeline = await this.trouble.read(() => this.backend.timeline(key));
    if (timeline?.some(({ event }) => event === 'cancelled')) this.#unsent = key;
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

  /** Asks whether the goods go before the bank has answered. */
  async askOffline(): Promise<void> {
    if (this.tender !== null) await this.offline.open(this.tender.id);
  }

  async takeOffline(): Promise<void> {
    const operation = await this.offline.take();
    if (operation) {
      this.queue.changed(operation);
      this.changed(operation);
    }
    await this.refresh();
  }

  /** A wish: of what was perhaps sent, only the bank can say that it is not charged. */
  async cancelIfNotCharged(): Promise<void> {
    if (this.operation !== null) await this.wishCancelled(this.operation);
    await this.poll();
  }

  async wishCancelled(operation: Operation): Promise<void> {
    if (this.cancelling) return;
    this.cancelling = true;
    try {
      const told = await this.trouble.write(() => this.backend.cancel(operation.key));
      if (told) {
        this.queue.changed(told);
        this.changed(told);
      }
    } finally {
      this.cancelling = false;
    }
  }

  /** Cash in the place of a card payment that was never sent: both in one commit. */
  async cashInstead(): Promise<void> {
    const { tender } = this;
    if (tender === null || this.sale.current === null) return;
    this.offline.close();
    await this.#begin('cash', tender.id);
  }

  #leaveInstead(): void {
    this.#freshTender();
    if (this.at === 'choose') this.at = 'operation';
  }

  /** Leaves the choice of a tender, or a payment that ended with nothing charged. */
  async back(): Promise<void> {
    const sale = this.sale.current;
    if (this.confirming || sale === null) return;
    if (this.instead !== null) return this.#leaveInstead();
    if (this.partPaid) return;
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
    this.#freshTender();
    this.offline.close();
    this.operation = this.queue.latest(operation);
    this.startedAt = Date.now();
    this.at = 'operation';
    void this.#learnUnsent(this.operation);
  }

  #showTaken(taken: CashTaken): void {
    this.taken = taken;
    this.at = 'taken';
  }

  #close(): void {
    this.at = 'closed';
    this.operation = null;
    this.taken = null;
    this.offline.close();
    this.#freshTender();
  }

  async #begin(kind: TenderKind, instead: string | null = null): Promise<void> {
    this.#freshTender();
    this.kind = kind;
    this.instead = instead;
    this.at = 'choose';
    const opening = {};
    this.#opening = opening;
    // An article tapped just before Pay is part of what is due.
    await this.sale.settled();
    const sale = this.sale.current;
    if (this.#opening !== opening) return;
    if (sale === null || sale.lines.length === 0) return this.#close();
    const begun = await this.trouble.read(() =>
      instead === null ? this.backend.beginTender(sale.id) : this.backend.beginCashInstead(instead),
    );
    if (this.#opening !== opening) return;
    if (begun) this.begun = begun;
    else if (instead !== null) this.#leaveInstead();
    // Nothing is due any more, or it is being paid: the sale itself says which.
    else await this.#reload();
  }

  #freshTender(): void {
    this.#opening = null;
    this.begun = null;
    this.instead = null;
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
    const beingPaid = sale.state === 'completed' || sale.tenders.some((tender) => isAwaited(tender) && tender.id !== this.instead);
    const elsewhere = sale.id !== front.id || (this.at === 'closed' && sale.state !== 'open') || (this.at === 'choose' && beingPaid);
    if (elsewhere) return this.#moveTo(sale);
    this.sale.show(sale);
    const { begun } = this;
    if (this.at !== 'choose' || this.confirming || this.instead !== null || begun === null) return;
    if (begun.due !== sale.due) void this.#begin(this.kind);
  }
}
