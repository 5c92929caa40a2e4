import type { Approvals } from './approvals.svelte';
import { asCommandError, type Backend } from './backend';
import type { PaymentStore } from './payment.svelte';
import type { QueueStore } from './queue.svelte';
import type { SaleStore } from './sale.svelte';
import type { Trouble } from './trouble.svelte';
import type { CommandError, Sale } from './types';

/** Open sales that a cashier puts aside under a name, and takes up again. */
export class ParkingStore {
  /** `name`: asks under which name; `list`: shows those parked. */
  at = $state<'closed' | 'name' | 'list'>('closed');
  busy = $state(false);
  /** Why the last wish was not done. */
  refused = $state.raw<CommandError | null>(null);

  /** Those that wait for the bank are no parked sales: they have the strip of the held ones. */
  parked: Sale[] = $derived.by(() => this.queue.held.filter(({ state }) => state === 'open'));

  constructor(
    readonly backend: Backend,
    readonly trouble: Trouble,
    readonly approvals: Approvals,
    readonly sale: SaleStore,
    readonly queue: QueueStore,
    readonly payment: PaymentStore,
  ) {}

  ask(): void {
    if (this.sale.lines.length === 0 || !this.sale.editable) return;
    this.#show('name');
  }

  list(): void {
    this.#show('list');
    void this.queue.refreshHeld();
  }

  close(): void {
    this.#show('closed');
  }

  async park(name: string): Promise<void> {
    // An article tapped just before belongs to what is parked.
    await this.sale.settled();
    const front = this.sale.current;
    if (front === null) return;
    const next = await this.#do(() => this.backend.parkSale(front.id, name));
    if (next === null) return;
    this.sale.show(next);
    this.close();
    await this.queue.refreshHeld();
  }

  async resume(saleId: string): Promise<void> {
    await this.sale.settled();
    const sale = await this.#do(() => this.backend.resumeSale(saleId));
    if (sale !== null) {
      this.payment.show(sale);
      this.close();
    }
    await this.queue.refreshHeld();
  }

  async drop(saleId: string): Promise<void> {
    const front = await this.#do(() => this.approvals.run((approval) => this.backend.dropSale(saleId, approval)));
    if (front !== null) this.sale.show(front);
    await this.queue.refreshHeld();
  }

  #show(at: 'closed' | 'name' | 'list'): void {
    this.at = at;
    this.refused = null;
  }

  async #do(command: () => Promise<Sale>): Promise<Sale | null> {
    if (this.busy) return null;
    this.busy = true;
    this.refused = null;
    try {
      return await command();
    } catch (thrown) {
      this.refused = asCommandError(thrown);
      if (this.refused.code === 'storage') this.trouble.note(thrown);
      return null;
    } finally {
      this.busy = false;
    }
  }
}
