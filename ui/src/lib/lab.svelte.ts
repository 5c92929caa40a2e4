import { asCommandError, type Backend } from './backend';
import type { Trouble } from './trouble.svelte';
import type { CommandError, LabFault, LabOperation, LabState } from './types';

/** What the lab can do to the bank: a fault of its own, or stop it. */
export type FaultId = LabFault | 'stopped';

/** The bundled bank's books beside the till's, and its faults. */
export class LabStore {
  state = $state.raw<LabState | null>(null);
  /** Why the books could not be read the last time. It is no trouble of the till's. */
  failed = $state.raw<CommandError | null>(null);
  /** A fault is being set or ended. */
  busy = $state(false);
  chosenKey = $state<string | null>(null);
  /** The account was emptied in this run. The bank has no word for it. */
  drained = $state(false);

  active: FaultId | null = $derived(this.state === null ? null : this.state.running ? (this.state.faults[0]?.fault ?? null) : 'stopped');
  hits = $derived(this.state?.faults[0]?.hits ?? 0);
  /** The payment of which the charges are shown large: the one chosen, or the newest. */
  chosen: LabOperation | null = $derived(
    this.state?.operations.find(({ key }) => key === this.chosenKey) ?? this.state?.operations[0] ?? null,
  );

  #asked = 0;
  #looking = false;

  constructor(
    readonly backend: Backend,
    readonly trouble: Trouble,
  ) {}

  /** Reads the books, unless that is being done. */
  async look(): Promise<void> {
    if (!this.#looking) await this.#read();
  }

  async #read(): Promise<void> {
    const asked = ++this.#asked;
    this.#looking = true;
    try {
      const state = await this.backend.labState();
      if (asked !== this.#asked) return;
      this.state = state;
      this.failed = null;
    } catch (thrown) {
      if (asked === this.#asked) this.failed = asCommandError(thrown);
    } finally {
      if (asked === this.#asked) this.#looking = false;
    }
  }

  choose(key: string): void {
    this.chosenKey = key;
  }

  /** Sets a fault in place of any other. True where the bank has it now. */
  async set(fault: FaultId): Promise<boolean> {
    return this.#do(async () => {
      if (fault === 'stopped') return this.backend.labBankStop();
      await this.#heal();
      await this.backend.labSetFaults([{ fault, times: null }]);
    });
  }

  /** Ends every fault: what hangs goes on, a bank that is stopped starts. */
  async clear(): Promise<boolean> {
    return this.#do(() => this.#heal());
  }

  async drain(): Promise<void> {
    if (await this.#do(() => this.backend.labDrain())) this.drained = true;
  }

  async #heal(): Promise<void> {
    // Asked of the bank and not of what was shown: the books may be older than the last click.
    await this.backend.labBankStart();
    await this.backend.labClear();
  }

  async #do(command: () => Promise<void>): Promise<boolean> {
    if (this.busy) return false;
    this.busy = true;
    const done = await this.trouble.write(async () => {
      await command();
      return true;
    });
    await this.#read();
    this.busy = false;
    return done === true;
  }
}
