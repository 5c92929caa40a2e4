import type { Approve } from './approval';
import type { Backend } from './backend';
import type { Trouble } from './trouble.svelte';
import type { OfflineAsk, Operation } from './types';

/** The question whether the goods go before the bank has answered. */
export class OfflineStore {
  /** What it would mean, as the till said last; null while nobody asks. */
  ask = $state.raw<OfflineAsk | null>(null);
  contact = $state('');
  /** True from the click until the till has answered. */
  taking = $state(false);

  #asked = 0;

  constructor(
    readonly backend: Backend,
    readonly trouble: Trouble,
    readonly approve: Approve,
  ) {}

  async open(tenderId: string): Promise<void> {
    this.contact = '';
    await this.#look(tenderId);
  }

  /** The figures again: another till window, or the payment itself, may have changed them. */
  async look(): Promise<void> {
    if (this.ask !== null && !this.taking) await this.#look(this.ask.tenderId);
  }

  close(): void {
    this.#asked += 1;
    this.ask = null;
  }

  /** Hands the goods over. Over a limit it takes a manager, whose PIN the till asks for. */
  async take(): Promise<Operation | null> {
    const { ask } = this;
    if (ask === null || this.taking) return null;
    const contact = this.contact.trim();
    const take = { tenderId: ask.tenderId, contact: contact === '' ? null : contact, overLimit: ask.over.length > 0 };
    this.taking = true;
    let operation: Operation | null;
    try {
      operation = await this.approve((approval) => this.backend.takeOffline(take, approval));
    } finally {
      this.taking = false;
    }
    if (operation) this.close();
    // Another payment may have used the room meanwhile: then the figures say so.
    else await this.look();
    return operation;
  }

  async #look(tenderId: string): Promise<void> {
    const asked = ++this.#asked;
    const ask = await this.trouble.read(() => this.backend.offlineAsk(tenderId));
    if (ask && asked === this.#asked) this.ask = ask.isTaken ? null : ask;
  }
}
