import { asCommandError } from './backend';
import type { CommandError } from './types';

/** What went wrong with the last command, and whether the till can save at all. */
export class Trouble {
  /** Why nothing can be saved; null while saving works. */
  storage = $state.raw<CommandError | null>(null);
  last = $state.raw<CommandError | null>(null);

  /** Runs a command that saves. One that goes through is no proof that the till can save: it may have had nothing to write. */
  async write<T>(command: () => Promise<T>): Promise<T | null> {
    try {
      const answer = await command();
      this.last = null;
      return answer;
    } catch (thrown) {
      this.note(thrown);
      return null;
    }
  }

  /** Runs a command that only reads: says nothing about whether the till can save. */
  async read<T>(command: () => Promise<T>): Promise<T | null> {
    try {
      return await command();
    } catch (thrown) {
      this.note(thrown);
      return null;
    }
  }

  /** Runs the write that is made to learn whether the till can save. Nothing else says so. Gives whether it can. */
  async probe(command: () => Promise<void>): Promise<boolean> {
    const told = this.storage;
    try {
      await command();
    } catch (thrown) {
      this.note(thrown);
      return false;
    }
    // What failed while the probe ran may have failed after it.
    if (this.storage === told) this.storage = null;
    return this.storage === null;
  }

  note(thrown: unknown): void {
    const error = asCommandError(thrown);
    if (error.code === 'storage') this.storage = error;
    else this.last = error;
  }

  dismiss(): void {
    this.last = null;
  }
}
