import type { LabStore } from './lab.svelte';
import type { Screen } from './till.svelte';
import { paymentOf, phaseAfter, steps, type Phase } from './tour-steps';
import type { LabOperation } from './types';

/** The guided tour of five faults. It can be left at any time, and leaves no fault behind. */
export class Tour {
  running = $state(false);
  index = $state(0);
  phase = $state<Phase>('pay');
  payment = $state.raw<LabOperation | null>(null);

  step = $derived(steps[this.index] ?? steps[0]!);
  last = $derived(this.index === steps.length - 1);

  /** Payments that there were before the step began. */
  #before: ReadonlySet<string> = new Set();

  constructor(
    readonly lab: LabStore,
    readonly go: (screen: Screen) => void,
  ) {}

  async start(): Promise<void> {
    await this.lab.look();
    this.running = true;
    await this.#begin(0);
  }

  /** Looks at the books that were read last, and goes on where something happened. */
  watch(): void {
    const { state } = this.lab;
    if (!this.running || state === null) return;
    const seen = paymentOf(state, this.#before);
    const payment = state.operations.find(({ key }) => key === this.payment?.key) ?? seen;
    this.payment = payment;
    this.phase = phaseAfter(this.phase, payment, this.step.fault);
    if (payment) this.lab.choose(payment.key);
  }

  /** Ends the fault of this step, so that the payment can settle. */
  async endFault(): Promise<void> {
    if (!(await this.lab.clear())) return;
    if (this.phase === 'open') this.phase = 'settling';
    this.watch();
  }

  async next(): Promise<void> {
    if (this.last) await this.leave();
    else await this.#begin(this.index + 1);
  }

  async leave(): Promise<void> {
    this.running = false;
    await this.lab.clear();
    this.go('lab');
  }

  async #begin(index: number): Promise<void> {
    this.index = index;
    this.phase = 'pay';
    this.payment = null;
    this.#before = new Set(this.lab.state?.operations.map(({ key }) => key));
    // Where the fault can't be set there is nothing to see: the trouble is shown, and the tour ends.
    if (!(await this.lab.set(this.step.fault))) await this.leave();
  }
}
