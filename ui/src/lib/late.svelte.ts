import type { Approve } from './approval';
import type { Backend } from './backend';
import type { Trouble } from './trouble.svelte';
import type { LateDecline, Operation } from './types';

/** More than a shop has open at once; what is beyond is found in the list of payments. */
const LATE_LIMIT = 200;

/** Payments that were taken offline and then did not pay: those that somebody must still do something about. */
export class LateStore {
  /** Newest first. */
  open = $state.raw<LateDecline[]>([]);
  /** Those of which the cashier must be told: nobody has done anything yet. */
  alarms = $derived(this.open.filter(({ state }) => state === 'open' || state === 'attention'));

  /** The one that is being written off in a dialog. */
  givingUp = $state.raw<LateDecline | null>(null);
  reason = $state('');
  writing = $state(false);

  #asked = 0;
  /** What became of those that left the list while this window looked. */
  #ended = $state.raw<LateDecline[]>([]);

  constructor(
    readonly backend: Backend,
    readonly trouble: Trouble,
    readonly approve: Approve,
  ) {}

  async load(): Promise<void> {
    const asked = ++this.#asked;
    const page = await this.trouble.read(() => this.backend.lateDeclines({ withEnded: false, before: null, limit: LATE_LIMIT }));
    if (page && asked === this.#asked) this.open = page.late;
  }

  /** An event of the till that may mean a new one, or another step of one. */
  changed(operation: Operation): void {
    const known = this.open.some((late) => late.saleId === operation.saleId);
    if (known || operation.acceptedOffline) void this.load();
  }

  saleChanged(saleId: string): void {
    if (this.open.some((late) => late.saleId === saleId)) void this.load();
  }

  /** The late decline for which this operation was begun, first or last. */
  of(operation: Operation): LateDecline | null {
    const isIts = (late: LateDecline) => late.operation.key === operation.key;
    return this.open.find(isIts) ?? this.#ended.find(isIts) ?? null;
  }

  /** The same, also of one that has long ended. */
  async find(operation: Operation): Promise<void> {
    if (!operation.acceptedOffline || this.of(operation) !== null) return;
    const page = await this.trouble.read(() => this.backend.lateDeclines({ withEnded: true, before: null, limit: LATE_LIMIT }));
    const found = page?.late.find((late) => late.operation.key === operation.key);
    if (found) this.#remember(found);
  }

  askWriteOff(late: LateDecline): void {
    this.trouble.dismiss();
    this.givingUp = late;
    this.reason = '';
  }

  leaveWriteOff(): void {
    if (!this.writing) this.givingUp = null;
  }

  async writeOff(): Promise<void> {
    const late = this.givingUp;
    const reason = this.reason.trim();
    if (late === null || reason === '' || this.writing) return;
    this.writing = true;
    try {
      const done = await this.approve((approval) => this.backend.writeOff(late.tenderId, reason, approval));
      if (done) {
        this.#remember(done);
        this.givingUp = null;
      }
    } finally {
      this.writing = false;
    }
    await this.load();
  }

  #remember(late: LateDecline): void {
    this.#ended = [...this.#ended.filter((each) => each.tenderId !== late.tenderId), late];
  }
}
