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

  /** A weighed article that waits for its weight: it is worth nothing until then, and is no line yet. */
  weighing = $state.raw<Article | null>(null);

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
    if (this.current?.id !== sale.id) this.cancelEntry();
    this.current = sale;
    if (sale.lines.some((line) => line.id === this.selectedId)) return;
    // A weight that is being typed is of no line, and goes on.
    if (this.weighing === null) this.entry = null;
    this.selectedId = sale.lines.at(-1)?.id ?? null;
  }

  select(lineId: string | null): void {
    if (this.selectedId !== lineId) this.cancelEntry();
    this.selectedId = lineId;
  }

  async add(article: Article): Promise<void> {
    if (this.locked()) return;
    this.cancelEntry();
    if (article.unit === 'weight') {
      this.weighing = article;
      this.entry = '';
    } else await this.#add(article, null);
  }

  async #add(article: Article, quantity: string | null): Promise<void> {
    const before = new Map(this.lines.map((line) => [line.id, line.quantity]));
    const sale = await this.#change(() => this.backend.addArticle(article.sku, quantity));
    if (!sale) return;
    const touched =
      sale.lines.findLast((line) => line.sku === article.sku && before.get(line.id) !== line.quantity) ??
      sale.lines.findLast((line) => line.sku === article.sku);
    // Whoever types meanwhile keeps the line that is typed for.
    if (touched && this.entry === null) this.select(touched.id);
  }

  startEntry(): void {
    if (!this.selected || !this.editable) return;
    this.weighing = null;
    this.entry = '';
  }

  type(key: string): void {
    const unit = this.weighing?.unit ?? this.selected?.unit;
    if (this.entry === null || unit === undefined) return;
    if (key === 'backspace') this.entry = this.entry.slice(0, -1);
    else if (key === '.') {
      if (unit === 'weight' && !this.entry.includes('.')) this.entry = `${this.entry || '0'}.`;
    } else {
      const next = this.entry === '0' ? key : this.entry + key;
      if (/^\d{0,5}(\.\d{0,3})?$/.test(next)) this.entry = next;
    }
  }

  cancelEntry(): void {
    this.entry = null;
    this.weighing = null;
  }

  async setEntry(): Promise<void> {
    const { selected: line, weighing } = this;
    const typed = this.entry?.replace(/\.$/, '') ?? '';
    const some = /[1-9]/.test(typed);
    // A weight has no figure that could stand without being typed.
    if (weighing !== null && !some) return;
    this.cancelEntry();
    if (weighing !== null) return this.#add(weighing, typed);
    if (line === null || !some) return;
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
