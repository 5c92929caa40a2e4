import { asCommandError } from './backend';
import type { CommandError } from './types';

/** What went wrong with the last command, and whether the till can save at all. */
export class Trouble {
  /** Why nothing can be saved; null while saving works. */
  storage = $state.raw<CommandError | null>(null);
  last = $state.raw<CommandError | null>(null);

  /** Runs a command that saves. One that goes through proves that the storage works again. */
  async write<T>(command: () => Promise<T>): Promise<T | null> {
    try {
      const answer = await command();
      this.storage = null;
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

  note(thrown: unknown): void {
    const error = asCommandError(thrown);
    if (error.code === 'storage') this.storage = error;
    else this.last = error;
  }

  dismiss(): void {
    this.last = null;
  }
}
