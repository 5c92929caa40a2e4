import { asCommandError, type Backend } from './backend';
import type { CommandError } from './types';

/** A receipt that is printed once more, and what the printer said. */
export class Reprinting {
  state = $state.raw<'idle' | 'busy' | 'nothing' | { copy: number } | { error: CommandError }>('idle');

  constructor(readonly backend: Backend) {}

  async print(saleId: string | null): Promise<void> {
    if (this.state === 'busy') return;
    if (saleId === null) {
      this.state = 'nothing';
      return;
    }
    this.state = 'busy';
    try {
      this.state = { copy: (await this.backend.printReceipt(saleId)).copy };
    } catch (thrown) {
      this.state = { error: asCommandError(thrown) };
    }
  }

  dismiss(): void {
    this.state = 'idle';
  }
}
