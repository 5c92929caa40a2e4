import { SvelteMap } from 'svelte/reactivity';

import type { Backend } from './backend';
import { isFinal } from './panel';
import type { Trouble } from './trouble.svelte';
import type { Operation, OperationState, Sale, Summary, TimelineEntry } from './types';

/** What is asked for at a time. */
const PAGE = 100;
/** Enough for every payment that a window can still be looking at. */
const REMEMBERED = 200;

/**
 * The later of two accounts of one operation: what is final stays, then more tries are later, then what
 * was told last. Times of day say nothing, since clocks are set back.
 */
export function newer(known: Operation | undefined, told: Operation): Operation {
  if (known === undefined || known.key !== told.key) return told;
  if (isFinal(known) && known.state !== told.state) return known;
  // A receipt number comes with the completion of the sale and never goes.
  if (isFinal(known)) return told.receiptNumber === null && known.receiptNumber !== null ? known : told;
  if (isFinal(told)) return told;
  // A wish to cancel and a handing over stand until the end: who does not know of them was told before.
  const older = (known.cancelWished && !told.cancelWished) || (known.acceptedOffline && !told.acceptedOffline);
  return older || told.attempts < known.attempts ? known : told;
}

/** What the outbox holds: the summary, the list of payments, one of them in detail, held sales. */
export class QueueStore {
  summary = $state.raw<Summary | null>(null);

  filter = $state<OperationState | null>(null);
  operations = $state.raw<Operation[]>([]);
  more = $state(false);
  listed = $state<'not-yet' | 'loading' | 'ready' | 'error'>('not-yet');

  selectedKey = $state<string | null>(null);
  #detail = $state.raw<Operation | null>(null);
  timeline = $state.raw<TimelineEntry[]>([]);

  held = $state.raw<Sale[]>([]);
  /** Held sales that the bank has completed meanwhile, until the cashier has read it. */
  completed = $state.raw<Operation[]>([]);

  /** Kept beside the list: a payment that settles leaves a filter, and whoever reads it reads on. */
  selected: Operation | null = $derived(this.#detail?.key === this.selectedKey ? this.#detail : null);

  /** The rows in sight, from the newest: what of the list is asked for again. */
  inSight = { first: 0, last: 0 };

  #latest = new SvelteMap<string, Operation>();
  #asked = 0;
  #paging = false;
  /** Answers can overtake each other; only the last question of each kind counts. */
  #summaries = 0;
  #helds = 0;
  #timelines = 0;

  constructor(
    readonly backend: Backend,
    readonly trouble: Trouble,
  ) {}

  async load(): Promise<void> {
    const asked = ++this.#summaries;
    const summary = await this.trouble.read(() => this.backend.summary());
    if (summary && asked === this.#summaries) this.summary = summary;
    await this.refreshHeld();
  }

  /** An event of the till: later than what was asked for before it. */
  told(summary: Summary): void {
    this.#summaries += 1;
    this.summary = summary;
  }

  /** Looks at the payments again, should an event have been lost. */
  async look(): Promise<void> {
    await Promise.all([this.list(), this.#lookAgain(), this.selectedKey === null ? null : this.#loadTimeline(this.selectedKey)]);
  }

  latest(operation: Operation): Operation {
    return newer(this.#latest.get(operation.key), operation);
  }

  async refreshHeld(): Promise<void> {
    const asked = ++this.#helds;
    const held = await this.trouble.read(() => this.backend.heldSales());
    if (held && asked === this.#helds) this.held = held;
  }

  dismissCompleted(key: string): void {
    this.completed = this.completed.filter((each) => each.key !== key);
  }

  /** An event of the till. */
  changed(operation: Operation): void {
    const told = newer(this.#latest.get(operation.key), operation);
    this.#latest.delete(operation.key);
    this.#latest.set(operation.key, told);
    const oldest = this.#latest.keys().next();
    if (this.#latest.size > REMEMBERED && !oldest.done) this.#latest.delete(oldest.value);

    const heldSale = this.held.find((sale) => sale.id === told.saleId);
    if (heldSale) {
      if (told.state === 'approved') void this.#sayCompleted(told.key);
      void this.refreshHeld();
    }

    if (this.listed === 'ready' || this.listed === 'loading') {
      this.#place(told);
    }
    if (this.#detail?.key === told.key) this.#detail = told;
    if (this.selectedKey === told.key) void this.#loadTimeline(told.key);
  }

  /** An approval completes a held sale where nothing more is due: then the sale has its receipt number. */
  async #sayCompleted(key: string): Promise<void> {
    const told = await this.trouble.read(() => this.backend.operation(key));
    if (told === null || told.receiptNumber === null || this.completed.some((each) => each.key === key)) return;
    this.completed = [...this.completed, told];
  }

  /** Puts one operation where it belongs in the list: newest first, and only where the filter has it. */
  #place(told: Operation): void {
    const at = this.operations.findIndex((each) => each.seq <= told.seq);
    const known = at >= 0 && this.operations[at]?.key === told.key ? this.operations[at] : undefined;
    const merged = newer(known, told);
    const belongs = this.filter === null || merged.state === this.filter;
    if (known) this.operations = belongs ? this.operations.with(at, merged) : this.operations.toSpliced(at, 1);
    else if (belongs && at >= 0) this.operations = this.operations.toSpliced(at, 0, merged);
    // Older than all that is listed: it is there once somebody pages to it.
    else if (belongs && !this.more) this.operations = [...this.operations, merged];
  }

  /** The newest page, put before what was paged to. */
  async list(): Promise<void> {
    const asked = ++this.#asked;
    const filter = this.filter;
    const newest = this.operations[0]?.seq ?? 0;
    if (this.listed !== 'ready') this.listed = 'loading';
    const page = await this.trouble.read(() => this.backend.operations({ state: filter, before: null, limit: PAGE }));
    if (asked !== this.#asked) return;
    if (!page) {
      this.listed = 'error';
      return;
    }
    // What an event brought while this was asked for.
    const top = page.operations[0]?.seq ?? 0;
    const fresh = this.operations.filter(({ seq }) => seq > newest && seq > top);
    const last = page.operations.at(-1)?.seq ?? 0;
    const joins = page.more && last <= newest;
    const older = joins ? this.operations.filter(({ seq }) => seq < last) : [];
    this.operations = [...fresh, ...page.operations.map((each) => this.latest(each)), ...older];
    if (!joins) this.more = page.more;
    const detail = this.operations.find((each) => each.key === this.selectedKey);
    if (detail) this.#detail = detail;
    this.listed = 'ready';
  }

  /** The next page, older than all that is listed. */
  async listMore(): Promise<void> {
    if (this.#paging || !this.more) return;
    this.#paging = true;
    try {
      const filter = this.filter;
      const before = this.operations.at(-1)?.seq ?? null;
      const page = await this.trouble.read(() => this.backend.operations({ state: filter, before, limit: PAGE }));
      if (!page || filter !== this.filter || before !== (this.operations.at(-1)?.seq ?? null)) return;
      this.operations = [...this.operations, ...page.operations.map((each) => this.latest(each))];
      this.more = page.more;
    } finally {
      this.#paging = false;
    }
  }

  /** The rows in sight again, should an event of one have been lost. */
  async #lookAgain(): Promise<void> {
    const { first } = this.inSight;
    if (first < PAGE / 2) return;
    const filter = this.filter;
    const before = this.operations[first - 1]?.seq ?? null;
    const page = await this.trouble.read(() => this.backend.operations({ state: filter, before, limit: PAGE }));
    if (page && before !== null && filter === this.filter) this.#replace(page.operations, before);
  }

  /** What the till says of one stretch of the list: what it has not in it has left the filter. */
  #replace(page: Operation[], before: number): void {
    const last = page.at(-1)?.seq;
    if (last === undefined) return;
    const newerOnes = this.operations.filter((each) => each.seq >= before);
    const olderOnes = this.operations.filter((each) => each.seq < last);
    this.operations = [...newerOnes, ...page.map((each) => this.latest(each)), ...olderOnes];
  }

  show(filter: OperationState | null): void {
    this.filter = filter;
    this.listed = 'loading';
    this.operations = [];
    void this.list();
  }

  async select(key: string | null): Promise<void> {
    this.selectedKey = key;
    this.timeline = [];
    if (key === null) return;
    this.#detail = this.operations.find((each) => each.key === key) ?? null;
    if (this.#detail === null) {
      const operation = await this.trouble.read(() => this.backend.operation(key));
      if (operation && this.selectedKey === key) this.#detail = this.latest(operation);
    }
    await this.#loadTimeline(key);
  }

  async retryNow(key: string | null): Promise<void> {
    await this.trouble.read(() => this.backend.retryNow(key));
  }

  async #loadTimeline(key: string): Promise<void> {
    const asked = ++this.#timelines;
    const timeline = await this.trouble.read(() => this.backend.timeline(key));
    if (timeline && asked === this.#timelines && this.selectedKey === key) this.timeline = timeline;
  }
}
