import type { Backend } from './backend';
import { step } from './quantity';
import type { Trouble } from './trouble.svelte';
import type { Article, Line, Sale } from './types';

/** The window's one open sale, with the line that the keys act on. */
export class SaleStore {
  current = $state.raw<Sale | null>(null);
  selectedId = $state<string | null>(null);
  /** The quantity being typed, as typed; null while none is. */
  entry = $state<string | null>(null);

  lines = $derived(this.current?.lines ?? []);
  selected: Line | null = $derived(this.lines.find((line) => line.id === this.selectedId) ?? null);
  editable = $derived(this.current?.state === 'open');

  /** Counts what was shown, so that an answer asked for earlier is not shown over it. */
  shown = 0;
  /** True while the sale is being paid: what would be added now would not be in the amount. */
  locked: () => boolean = () => false;

  /** Changes go to the till one after another, so that ten quick taps are ten articles. */
  #tail: Promise<unknown> = Promise.resolve();

  constructor(
    readonly backend: Backend,
    readonly trouble: Trouble,
  ) {}

  async load(): Promise<Sale | null> {
    const sale = await this.read();
    if (sale) this.show(sale);
    return sale;
  }

  /** The sale in front as the till has it, unless another was shown since it was asked for. */
  async read(): Promise<Sale | null> {
    const before = this.shown;
    const sale = await this.trouble.read(() => this.backend.openSale());
    return before === this.shown ? sale : null;
  }

  /** Resolves once every change asked for so far has its answer. */
  async settled(): Promise<void> {
    await this.#tail;
  }

  show(sale: Sale): void {
    this.shown += 1;
    if (this.current?.id !== sale.id) this.entry = null;
    this.current = sale;
    if (!sale.lines.some((line) => line.id === this.selectedId)) this.select(sale.lines.at(-1)?.id ?? null);
  }

  select(lineId: string | null): void {
    if (this.selectedId !== lineId) this.entry = null;
    this.selectedId = lineId;
  }

  async add(article: Article): Promise<void> {
    const before = new Map(this.lines.map((line) => [line.id, line.quantity]));
    const sale = await this.#change(() => this.backend.addArticle(article.sku, null));
    if (!sale) return;
    const touched =
      sale.lines.findLast((line) => line.sku === article.sku && before.get(line.id) !== line.quantity) ??
      sale.lines.findLast((line) => line.sku === article.sku);
    if (touched) this.select(touched.id);
    // A weighed article is worth nothing until its weight is known.
    if (touched && article.unit === 'weight') this.startEntry();
  }

  startEntry(): void {
    if (this.selected && this.editable) this.entry = '';
  }

  type(key: string): void {
    if (this.entry === null || this.selected === null) return;
    if (key === 'backspace') this.entry = this.entry.slice(0, -1);
    else if (key === '.') {
      if (this.selected.unit === 'weight' && !this.entry.includes('.')) this.entry = `${this.entry || '0'}.`;
    } else {
      const next = this.entry === '0' ? key : this.entry + key;
      if (/^\d{0,5}(\.\d{0,3})?$/.test(next)) this.entry = next;
    }
  }

  cancelEntry(): void {
    this.entry = null;
  }

  async setEntry(): Promise<void> {
    const line = this.selected;
    const typed = this.entry?.replace(/\.$/, '') ?? '';
    this.entry = null;
    if (line === null || !/[1-9]/.test(typed)) return;
    await this.#change(() => this.backend.setQuantity(line.id, typed));
  }

  async stepSelected(direction: 1 | -1): Promise<void> {
    // Read inside the queue: the quantity is the one after the taps before this one.
    await this.#change(() => {
      const line = this.selected;
      const next = line && step(line.quantity, line.unit, direction);
      return line && next !== null ? this.backend.setQuantity(line.id, next) : null;
    });
  }

  async removeSelected(): Promise<void> {
    await this.#change(() => {
      const line = this.selected;
      if (!line) return null;
      const index = this.lines.indexOf(line);
      this.select(this.lines[index + 1]?.id ?? this.lines[index - 1]?.id ?? null);
      return this.backend.removeLine(line.id);
    });
  }

  async clear(): Promise<void> {
    await this.#change(() => this.backend.clearSale());
  }

  async #change(command: () => Promise<Sale> | null): Promise<Sale | null> {
    if (this.locked()) return null;
    const turn = this.#tail.then(async () => {
      const running = command();
      if (running === null) return null;
      const sale = await this.trouble.write(() => running);
      if (sale) this.show(sale);
      else if (this.trouble.last?.code === 'sale-changed' || this.trouble.last?.code === 'sale-frozen') await this.load();
      return sale;
    });
    this.#tail = turn;
    return turn;
  }
}
