import type { Approve } from './approval';
import type { Backend } from './backend';
import type { Trouble } from './trouble.svelte';
import type { PricedVoid, Sale, SaleVoid } from './types';

/** Giving up a sale of which a part is paid: all of that goes back. */
export class VoidStore {
  /** The sale that the dialog is about; null while there is none. */
  sale = $state.raw<Sale | null>(null);
  /** What would go back, as the till said. */
  priced = $state.raw<PricedVoid | null>(null);
  done = $state.raw<SaleVoid | null>(null);
  reason = $state('');
  giving = $state(false);

  #opening: object | null = null;

  constructor(
    readonly backend: Backend,
    readonly trouble: Trouble,
    readonly approve: Approve,
  ) {}

  async open(sale: Sale): Promise<void> {
    const opening = {};
    this.#opening = opening;
    this.trouble.dismiss();
    this.sale = sale;
    this.priced = null;
    this.done = null;
    this.reason = '';
    const priced = await this.trouble.read(() => this.backend.beginVoid(sale.id));
    if (this.#opening !== opening) return;
    if (priced) this.priced = priced;
    else this.close();
  }

  close(): void {
    if (this.giving) return;
    this.#opening = null;
    this.sale = null;
  }

  /** True where it is given up. */
  async give(): Promise<boolean> {
    const { sale, priced } = this;
    if (sale === null || priced === null || this.giving || this.done !== null) return false;
    const reason = this.reason.trim();
    const fresh = { voidId: priced.voidId, saleId: sale.id, reason: reason === '' ? null : reason };
    this.giving = true;
    try {
      this.done = await this.approve((approval) => this.backend.voidSale(fresh, approval));
    } finally {
      this.giving = false;
    }
    return this.done !== null;
  }
}
