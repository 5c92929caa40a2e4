import type { Approvals } from './approvals.svelte';
import { asCommandError, type Backend } from './backend';
import { Count } from './count.svelte';
import { finished, formOf, isOfArticle, isSome, typed, type Asking, type By } from './entry';
import { step } from './quantity';
import type { Trouble } from './trouble.svelte';
import type { Article, Asked, CommandError, Line, PinEntry, Sale } from './types';

type Command = (approval: PinEntry | null) => Promise<Sale>;

/** The window's one open sale, with the line that the keys act on. */
export class SaleStore {
  current = $state.raw<Sale | null>(null);
  selectedId = $state<string | null>(null);
  /** What the keypad is asked for now. */
  asking = $state.raw<Asking | null>(null);
  #typed = $state('');
  /** Why the last change was not made; null once another was, or it was read. */
  refused = $state.raw<CommandError | null>(null);
  readonly count = new Count();

  lines = $derived(this.current?.lines ?? []);
  selected: Line | null = $derived(this.lines.find((line) => line.id === this.selectedId) ?? null);
  editable = $derived(this.current?.state === 'open');
  /** What is being typed, as typed; null while nothing is asked for. */
  entry: string | null = $derived(this.asking === null ? null : this.#typed);
  form = $derived(this.asking === null ? null : formOf(this.asking, this.selected?.unit ?? 'piece'));

  /** Counts what was shown, so that an answer asked for earlier is not shown over it. */
  shown = 0;
  /** The sale that was completed here last, whose receipt may be wanted once more. */
  lastCompleted: string | null = null;
  /** True while the sale is being paid: what would be added now would not be in the amount. */
  locked: () => boolean = () => false;

  /** Changes go to the till one after another, so that ten quick taps are ten articles. */
  #tail: Promise<unknown> = Promise.resolve();
  /** Articles that came while another was asked about: each has its turn. */
  #later: Asking[] = [];

  constructor(
    readonly backend: Backend,
    readonly trouble: Trouble,
    readonly approvals: Approvals,
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
    if (this.current?.id !== sale.id) {
      this.#later = [];
      this.cancelEntry();
      this.count.clear();
      this.refused = null;
    }
    this.current = sale;
    if (sale.state === 'completed') this.lastCompleted = sale.id;
    if (sale.lines.some((line) => line.id === this.selectedId)) return;
    // What is typed for an article that is no line yet, or for the sale, goes on.
    if (this.asking !== null && 'lineId' in this.asking) this.cancelEntry();
    this.selectedId = sale.lines.at(-1)?.id ?? null;
  }

  select(lineId: string | null): void {
    if (this.selectedId !== lineId) this.cancelEntry();
    this.selectedId = lineId;
    this.refused = null;
  }

  /** An article was tapped. */
  async add(article: Article): Promise<void> {
    if (this.locked()) return;
    const times = this.count.takeTimes();
    this.cancelEntry();
    const { sku: code, name } = article;
    if (article.unit === 'weight' && times === null) this.#ask({ what: 'weight', code, name });
    else if (article.openPrice) this.#ask({ what: 'open-price', code, name, quantity: times });
    else await this.#add({ code, name }, times);
  }

  /** A code was scanned or typed. Gives the error where the till knows no such article. */
  async ringUp(code: string, quantity: string | null): Promise<CommandError | null> {
    if (this.locked()) return null;
    const article = await this.#articleOf(code);
    const name = article?.name ?? code;
    if (article?.unit === 'weight' && quantity === null) this.#ask({ what: 'weight', code, name });
    else return this.#add({ code, name }, quantity);
    return null;
  }

  /** The article of a code, where the search finds just one. Only the till's own word rings it up. */
  async #articleOf(code: string): Promise<Article | null> {
    const page = await this.trouble.read(() => this.backend.articles({ text: code, category: null }));
    const exact = page?.articles.find(({ sku }) => sku === code);
    return exact ?? (page?.articles.length === 1 ? (page.articles[0] ?? null) : null);
  }

  async #add({ code, name }: { code: string; name: string }, quantity: string | null): Promise<CommandError | null> {
    let refused: CommandError | null = null;
    await this.#adding(
      (approval) => this.backend.addArticle(code, quantity, approval),
      (error) => {
        if (error.code === 'price-needed') this.#ask({ what: 'open-price', code, name, quantity });
        else if (error.code === 'unknown-article' || error.code === 'invalid-barcode') refused = error;
        else return false;
        return true;
      },
    );
    return refused;
  }

  async #adding(command: Command, refused: (error: CommandError) => boolean): Promise<void> {
    const before = new Map<string, string>();
    const sale = await this.#change(() => {
      this.lines.forEach((line) => before.set(line.id, line.quantity));
      return command;
    }, refused);
    const touched = sale?.lines.findLast((line) => before.get(line.id) !== line.quantity);
    // Whoever types meanwhile keeps the line that is typed for.
    if (touched && this.asking === null) this.select(touched.id);
  }

  startEntry(): void {
    if (this.selected) this.#start({ what: 'quantity', lineId: this.selected.id });
  }

  startPrice(): void {
    if (this.selected) this.#start({ what: 'price', lineId: this.selected.id });
  }

  startDiscount(): void {
    if (this.selected) this.#start({ what: 'line-discount', lineId: this.selected.id, by: byOf(this.selected.discountAsked) });
  }

  startSaleDiscount(): void {
    if (this.lines.length > 0) this.#start({ what: 'sale-discount', by: byOf(this.current?.discountAsked ?? null) });
  }

  /** A discount in percent or as an amount: another meaning of the figures, which begin anew. */
  discountBy(by: By): void {
    if (this.asking === null || !('by' in this.asking) || this.asking.by === by) return;
    this.asking = { ...this.asking, by };
    this.#typed = '';
  }

  type(key: string): void {
    if (this.form === null) return;
    this.refused = null;
    this.#typed = typed(this.form, this.#typed, key);
  }

  cancelEntry(): void {
    this.asking = null;
    this.#typed = '';
    this.#next();
  }

  async setEntry(): Promise<void> {
    const { asking } = this;
    const text = finished(this.#typed);
    if (asking === null) return;
    // A weight or an open price has no figure that could stand without being typed.
    if (isOfArticle(asking) && (asking.what === 'weight' ? !isSome(text) : text === '')) return;
    this.cancelEntry();
    if (text === '' || (asking.what === 'quantity' && !isSome(text))) return;
    await this.#set(asking, text);
  }

  async #set(asking: Asking, text: string): Promise<void> {
    const { backend } = this;
    const again = (error: CommandError) => this.#askAgain(asking, text, error);
    switch (asking.what) {
      case 'weight':
        await this.#adding(
          (approval) => backend.addArticle(asking.code, text, approval),
          (error) => {
            if (error.code !== 'price-needed') return again(error);
            this.#ask({ ...asking, what: 'open-price', quantity: text });
            return true;
          },
        );
        return;
      case 'open-price':
        await this.#adding(() => backend.addAtPrice(asking.code, asking.quantity, Number(text)), again);
        return;
      case 'quantity':
        await this.#change(() => (approval) => backend.setQuantity(asking.lineId, text, approval), again);
        return;
      case 'price':
        await this.#change(() => (approval) => backend.setPrice(asking.lineId, Number(text), approval), again);
        return;
      default:
        await this.#discount(asking, isSome(text) ? askedOf(asking.by, text) : null, again);
    }
  }

  /** Takes the discount away that is asked for. */
  async noDiscount(): Promise<void> {
    const { asking } = this;
    if (asking === null || !('by' in asking)) return;
    this.cancelEntry();
    await this.#discount(asking, null, () => false);
  }

  async #discount(asking: Extract<Asking, { by: By }>, asked: Asked | null, refused: (error: CommandError) => boolean): Promise<void> {
    await this.#change(() => {
      const sale = this.current;
      if (asking.what === 'line-discount') return (approval) => this.backend.discountLine(asking.lineId, asked, approval);
      return sale && ((approval) => this.backend.discountSale(sale.id, asked, approval));
    }, refused);
  }

  /** Notes something on a line. Gives why not, where the till refuses the note. */
  async note(lineId: string, note: string): Promise<CommandError | null> {
    let refused: CommandError | null = null;
    await this.#change(
      () => () => this.backend.setNote(lineId, note),
      (error) => {
        refused = error;
        return true;
      },
    );
    return refused;
  }

  async stepSelected(direction: 1 | -1): Promise<void> {
    // Read inside the queue: the quantity is the one after the taps before this one.
    await this.#change(() => {
      const line = this.selected;
      const next = line && step(line.quantity, line.unit, direction);
      return line && next !== null ? (approval) => this.backend.setQuantity(line.id, next, approval) : null;
    });
  }

  async removeSelected(): Promise<void> {
    await this.#change(() => {
      const line = this.selected;
      if (!line) return null;
      return async (approval) => {
        const index = this.lines.findIndex(({ id }) => id === line.id);
        const sale = await this.backend.removeLine(line.id, approval);
        if (this.selectedId === line.id) this.select(this.lines[index + 1]?.id ?? this.lines[index - 1]?.id ?? null);
        return sale;
      };
    });
  }

  async undo(): Promise<void> {
    await this.#change(() => {
      const sale = this.current;
      return sale && ((approval) => this.backend.undo(sale.id, approval));
    });
  }

  async clear(): Promise<void> {
    await this.#change(() => (approval) => this.backend.clearSale(approval));
  }

  /** True where there was something to put away. */
  dismiss(): boolean {
    const some = this.refused !== null;
    this.refused = null;
    return some;
  }

  #start(asking: Asking): void {
    if (!this.editable || this.locked()) return;
    this.refused = null;
    this.asking = asking;
    this.#typed = '';
  }

  /** An article has something to be asked; while another has, it waits. */
  #ask(asking: Asking): void {
    if (this.asking === null) this.#start(asking);
    else this.#later.push(asking);
  }

  #next(): void {
    const next = this.#later.shift();
    if (next !== undefined) this.#start(next);
  }

  /** What was typed stands again, with why it did not do. */
  #askAgain(asking: Asking, text: string, error: CommandError): boolean {
    const gone = 'lineId' in asking && asking.lineId !== this.selectedId;
    if (this.asking !== null || gone || this.locked()) return false;
    this.#start(asking);
    this.#typed = text;
    this.refused = error;
    return true;
  }

  /** `prepare` runs in its turn; null is nothing to do. `refused` says whether it has dealt with an error. */
  async #change(prepare: () => Command | null, refused: (error: CommandError) => boolean = () => false): Promise<Sale | null> {
    if (this.locked()) return null;
    const turn = this.#tail.then(async () => {
      const command = prepare();
      if (command === null) return null;
      try {
        const sale = await this.approvals.run(command);
        this.trouble.dismiss();
        this.refused = null;
        this.show(sale);
        return sale;
      } catch (thrown) {
        await this.#refuse(asCommandError(thrown), refused);
        return null;
      }
    });
    this.#tail = turn;
    return turn;
  }

  async #refuse(error: CommandError, handled: (error: CommandError) => boolean): Promise<void> {
    if (error.code === 'storage') return this.trouble.note(error);
    if (error.code === 'sale-changed' || error.code === 'sale-frozen') await this.load();
    if (!handled(error)) this.refused = error;
  }
}

function byOf(asked: Asked | null): By {
  return asked?.amount !== undefined ? 'amount' : 'percent';
}

function askedOf(by: By, text: string): Asked {
  return by === 'percent' ? { percent: text } : { amount: Number(text) };
}
