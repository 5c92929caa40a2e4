import { getContext, setContext } from 'svelte';

import type { Approve } from './approval';
import { Approvals } from './approvals.svelte';
import { asCommandError, type Backend } from './backend';
import { CatalogueStore } from './catalogue.svelte';
import { Clock } from './clock.svelte';
import { CollectStore } from './collecting.svelte';
import { Guard } from './guard.svelte';
import { LabStore } from './lab.svelte';
import { LateStore } from './late.svelte';
import { ParkingStore } from './parking.svelte';
import { PaymentStore } from './payment.svelte';
import { PeopleStore } from './people.svelte';
import { Preferences } from './preferences.svelte';
import { QueueStore } from './queue.svelte';
import { Reprinting } from './reprinting.svelte';
import { SaleStore } from './sale.svelte';
import { ScanStore } from './scans.svelte';
import { Tour } from './tour.svelte';
import { Trouble } from './trouble.svelte';
import { VoidStore } from './voiding.svelte';
import type { AppInfo, CloseRequested, CommandError, Operation } from './types';

/** How often the window looks at a payment that it shows and that is still open. */
const POLL_MS = 2000;
/** How often the window asks how things stand, should an event have been lost. */
const GLANCE_MS = 10_000;
/** How often the window tries whether the till can save again. */
const PROBE_MS = 3000;

/** How often the bank lab's books are read, while somebody watches them. */
const LAB_MS = 700;

export type Screen = 'sale' | 'payments' | 'lab';

/** Everything that the window knows, wired to one backend. */
export class Till {
  info = $state.raw<AppInfo | null>(null);
  startError = $state.raw<CommandError | null>(null);
  screen = $state<Screen>('sale');
  /** Dialogs that cover the screen; the screen's own keys rest meanwhile. */
  dialogs = $state(0);
  /** Somebody wants to close the window while these are not settled. */
  closing = $state.raw<CloseRequested | null>(null);
  /** A lab there is where the bundled bank runs, and nowhere else. */
  hasLab = $derived(this.info?.bank.bundled ?? false);
  /** The list of the keys is open. */
  helping = $state(false);

  readonly preferences = new Preferences();
  readonly clock = new Clock();
  readonly guard = new Guard();
  readonly trouble = new Trouble();
  readonly catalogue: CatalogueStore;
  readonly sale: SaleStore;
  readonly queue: QueueStore;
  readonly payment: PaymentStore;
  readonly people: PeopleStore;
  readonly lab: LabStore;
  readonly tour: Tour;
  readonly late: LateStore;
  readonly collecting: CollectStore;
  readonly voiding: VoidStore;
  /** The payment that a manager is to look at, in a dialog. */
  looking = $state.raw<Operation | null>(null);
  /** Runs a command that may take a manager. */
  readonly approve: Approve = (command) => this.trouble.write(() => this.approvals.run(command));
  readonly approvals: Approvals;
  readonly scans: ScanStore;
  readonly parking: ParkingStore;
  readonly reprinting: Reprinting;

  constructor(readonly backend: Backend) {
    this.catalogue = new CatalogueStore(backend, this.trouble);
    this.approvals = new Approvals(backend);
    this.sale = new SaleStore(backend, this.trouble, this.approvals);
    this.queue = new QueueStore(backend, this.trouble);
    this.payment = new PaymentStore(backend, this.trouble, this.sale, this.queue, this.clock, this.approve);
    this.people = new PeopleStore(backend, this.trouble);
    this.lab = new LabStore(backend, this.trouble);
    this.tour = new Tour(this.lab, (screen) => this.go(screen));
    this.late = new LateStore(backend, this.trouble, this.approve);
    this.collecting = new CollectStore(backend, this.trouble, this.queue);
    this.voiding = new VoidStore(backend, this.trouble, this.approve);
    this.scans = new ScanStore(this.sale, this.payment, () => this.go('sale'));
    this.parking = new ParkingStore(backend, this.trouble, this.approvals, this.sale, this.queue, this.payment);
    this.reprinting = new Reprinting(backend);
  }

  /** Loads what the first screen needs and follows the till's events; the result ends that. */
  start(): () => void {
    let stopped = false;
    const stops: (() => void)[] = [this.clock.start()];
    const every = (ms: number, run: () => unknown) => {
      const timer = setInterval(run, ms);
      stops.push(() => clearInterval(timer));
    };
    every(POLL_MS, () => Promise.all([this.payment.poll(), this.collecting.poll()]));
    every(GLANCE_MS, () => Promise.all([this.queue.load(), this.late.load(), this.screen === 'payments' ? this.queue.look() : null]));
    // Elsewhere it is only to be seen whether somebody left a fault on.
    every(GLANCE_MS, () => (this.hasLab ? this.lab.look() : undefined));
    every(LAB_MS, () => (this.hasLab && (this.screen === 'lab' || this.tour.running) ? this.lab.look() : undefined));
    every(PROBE_MS, () => (this.trouble.storage ? this.probe() : undefined));

    void this.#follow().then((stop) => (stopped ? stop() : stops.push(stop)));
    void this.open();
    return () => {
      stopped = true;
      stops.forEach((stop) => stop());
    };
  }

  async open(): Promise<void> {
    this.startError = null;
    try {
      this.info = await this.backend.appInfo();
      await Promise.all([this.#openSale(), this.catalogue.load(), this.queue.load(), this.late.load(), this.people.load()]);
    } catch (thrown) {
      this.startError = asCommandError(thrown);
    }
  }

  /** Without its sale the window is nothing; where only the storage is in the way, that is said and tried again. */
  async #openSale(): Promise<void> {
    try {
      const sale = await this.backend.openSale();
      this.sale.show(sale);
      this.payment.resume(sale);
    } catch (thrown) {
      if (asCommandError(thrown).code !== 'storage') throw thrown;
      this.trouble.note(thrown);
    }
  }

  /** Tries whether the till can save again, and looks at what a click in between may have saved after all. */
  async probe(): Promise<void> {
    if (await this.trouble.probe(() => this.backend.probeStorage())) {
      await (this.sale.current === null ? this.open() : this.payment.refresh());
    }
  }

  /** Prints the receipt of the sale in front once more, or of the one that was completed last. */
  async reprint(): Promise<void> {
    await this.reprinting.print(this.sale.current?.state === 'completed' ? this.sale.current.id : this.sale.lastCompleted);
  }

  go(screen: Screen): void {
    if (screen === 'lab' && !this.hasLab) return;
    this.screen = screen;
    if (screen === 'payments') void Promise.all([this.queue.list(), this.late.load()]);
    if (screen === 'lab') void this.lab.look();
  }

  /** Closes the window although payments are not settled: they go on at the next start. */
  async closeAnyway(): Promise<void> {
    await this.trouble.write(() => this.backend.closeAnyway());
  }

  async details(key: string): Promise<void> {
    this.go('payments');
    await this.queue.select(key);
  }

  async #follow(): Promise<() => void> {
    try {
      return await this.backend.listen({
        operationChanged: (operation) => {
          this.queue.changed(operation);
          this.payment.changed(operation);
          this.collecting.changed(operation);
          this.late.changed(operation);
        },
        sessionChanged: () => void this.people.load(),
        closeRequested: (asked) => (this.closing = asked),
        summaryChanged: (summary) => this.queue.told(summary),
        saleChanged: ({ saleId }) => {
          void this.payment.saleChanged(saleId);
          this.late.saleChanged(saleId);
          if (this.queue.held.some((sale) => sale.id === saleId)) void this.queue.refreshHeld();
        },
      });
    } catch (thrown) {
      this.trouble.note(thrown);
      return () => {};
    }
  }
}

const TILL = Symbol('till');

export function provideTill(till: Till): Till {
  return setContext(TILL, till);
}

export function useTill(): Till {
  return getContext<Till>(TILL);
}
