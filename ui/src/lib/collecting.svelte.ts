import type { Backend } from './backend';
import { isFinal } from './panel';
import type { QueueStore } from './queue.svelte';
import type { Trouble } from './trouble.svelte';
import type { BegunTender, CashTaken, LateDecline, Operation, TenderKind } from './types';

/** Longest amount that a key can make: 999,999.99, the bank's own limit. */
const AMOUNT_DIGITS_MAX = 8;

/** Collecting again what was declined late, by a card or in cash: one tender from the dialog's opening on. */
export class CollectStore {
  late = $state.raw<LateDecline | null>(null);
  begun = $state.raw<BegunTender | null>(null);
  kind = $state<TenderKind>('card');
  card = $state<string | null>(null);
  /** Minor units as typed; '' where nothing is. */
  digits = $state('');
  confirming = $state(false);
  operation = $state.raw<Operation | null>(null);
  taken = $state.raw<CashTaken | null>(null);

  amount = $derived(this.digits === '' ? null : Number(this.digits));
  tooLittle = $derived(this.kind === 'cash' && this.amount !== null && this.begun !== null && this.amount < this.begun.cashDue);
  ready = $derived(
    this.begun !== null && !this.confirming && (this.kind === 'card' ? this.card !== null : this.amount !== null && !this.tooLittle),
  );

  #opening: object | null = null;

  constructor(
    readonly backend: Backend,
    readonly trouble: Trouble,
    readonly queue: QueueStore,
  ) {}

  async open(late: LateDecline): Promise<void> {
    const opening = {};
    this.#opening = opening;
    this.trouble.dismiss();
    this.late = late;
    this.begun = null;
    this.card = null;
    this.digits = '';
    this.operation = null;
    this.taken = null;
    const begun = await this.trouble.read(() => this.backend.beginCollecting(late.tenderId));
    if (this.#opening !== opening) return;
    if (begun) this.begun = begun;
    // It is being collected already, or nothing is owed any more: that has been said.
    else this.close();
  }

  close(): void {
    if (this.confirming) return;
    this.#opening = null;
    this.late = null;
  }

  choose(kind: TenderKind): void {
    if (this.confirming) return;
    if (this.kind !== kind) this.digits = '';
    this.kind = kind;
  }

  chooseCard(token: string): void {
    if (!this.confirming) this.card = token;
  }

  take(amount: number): void {
    if (!this.confirming) this.digits = String(amount);
  }

  type(key: string): void {
    if (this.confirming) return;
    if (key === 'backspace') this.digits = this.digits.slice(0, -1);
    else if (this.digits.length + key.length <= AMOUNT_DIGITS_MAX) this.digits = (this.digits + key).replace(/^0+/, '');
  }

  /** However often it is called, the tender makes one payment. */
  async confirm(): Promise<void> {
    const { late, begun, card, amount } = this;
    if (!this.ready || late === null || begun === null) return;
    const { tenderId } = begun;
    const lateTenderId = late.tenderId;
    this.confirming = true;
    try {
      if (this.kind === 'card' && card !== null) {
        this.operation = await this.trouble.write(() => this.backend.collectAgain({ tenderId, lateTenderId, card }));
      } else if (amount !== null) {
        this.taken = await this.trouble.write(() => this.backend.collectInCash({ tenderId, lateTenderId, tendered: amount }));
      }
    } finally {
      this.confirming = false;
    }
  }

  /** After a refusal: the same late decline with a tender of its own. */
  async again(): Promise<void> {
    if (this.late !== null) await this.open(this.late);
  }

  /** An event of the till. */
  changed(operation: Operation): void {
    if (this.operation?.key === operation.key) this.operation = this.queue.latest(operation);
  }

  /** Asks the till itself, should an event have been lost. */
  async poll(): Promise<void> {
    const { operation } = this;
    if (this.late === null || operation === null || isFinal(operation)) return;
    const told = await this.trouble.read(() => this.backend.operation(operation.key));
    if (told) this.changed(told);
  }
}
