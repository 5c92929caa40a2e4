import type { PaymentStore } from './payment.svelte';
import type { SaleStore } from './sale.svelte';
import { withCount } from './scanner';
import type { CommandError } from './types';

export type NotRungUp = { code: string; error: CommandError };

/** What the scanner reads: rung up one after another. What could not be stays in sight until somebody has read it. */
export class ScanStore {
  /** Codes that nothing was rung up for, the last one last. */
  notRungUp = $state.raw<NotRungUp[]>([]);

  #tail: Promise<unknown> = Promise.resolve();

  constructor(
    readonly sale: SaleStore,
    readonly payment: PaymentStore,
    readonly showSale: () => void,
  ) {}

  /** A scan, wherever the focus is. While a payment is under way it is of no use: the amount is fixed. */
  async take(scanned: string): Promise<void> {
    const { code, count } = withCount(scanned);
    // A count typed just before is of this scan, whatever else is scanned meanwhile.
    const quantity = count ?? this.sale.count.takeTimes();
    await this.#inTurn(code, quantity);
  }

  /** An article's number that was typed. */
  async ring(code: string): Promise<void> {
    await this.#inTurn(code, this.sale.count.takeTimes());
  }

  /** True where there was something to put away. */
  dismiss(): boolean {
    const some = this.notRungUp.length > 0;
    this.notRungUp = [];
    return some;
  }

  async #inTurn(code: string, quantity: string | null): Promise<void> {
    const turn = this.#tail.then(() => this.#ringUp(code, quantity));
    this.#tail = turn;
    await turn;
  }

  async #ringUp(code: string, quantity: string | null): Promise<void> {
    if (!(await this.#ready())) return;
    this.showSale();
    const error = await this.sale.ringUp(code, quantity);
    if (error !== null) this.notRungUp = [...this.notRungUp.filter((each) => each.code !== code), { code, error }];
  }

  /** The next customer's first article begins the next sale; before that, a sale under payment takes none. */
  async #ready(): Promise<boolean> {
    if (this.payment.at === 'closed') return this.#selling();
    if (this.payment.confirming || this.sale.current?.state !== 'completed' || this.payment.at === 'choose') return false;
    await this.payment.newSale();
    return this.#selling();
  }

  #selling(): boolean {
    return this.payment.at === 'closed' && this.sale.editable;
  }
}
