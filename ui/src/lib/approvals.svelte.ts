import { asCommandError, type Backend } from './backend';
import type { CommandError, Person, PinEntry } from './types';

/** `approve`: somebody else's PIN for one command. `log-in`: nobody is logged in. */
export type PinPurpose = 'approve' | 'log-in';

export type PinQuestion = {
  purpose: PinPurpose;
  /** Why the till asks. */
  error: CommandError;
  resolve: (answer: boolean) => void;
  tryPin: (entry: PinEntry) => Promise<void>;
};

/**
 * Asks for a PIN where the till wants one, and runs the command again with it. The till decides;
 * nothing is known here of who may do what.
 */
export class Approvals {
  question = $state.raw<PinQuestion | null>(null);
  people = $state.raw<Person[]>([]);
  /** What the till said to the last PIN. */
  refused = $state.raw<CommandError | null>(null);
  checking = $state(false);
  /** Until when a person's PIN is not looked at, by person: times of this machine's clock. */
  waits = $state.raw<ReadonlyMap<number, number>>(new Map());

  /** One question at a time: what is asked meanwhile waits. */
  #tail: Promise<unknown> = Promise.resolve();

  constructor(readonly backend: Backend) {}

  /**
   * Runs a command. Where the till does not allow it, asks for the PIN of who may and runs it again with
   * that; where the till is locked, asks somebody to log in first. Rejects with the till's error, also
   * where the question was closed.
   */
  async run<T>(command: (approval: PinEntry | null) => Promise<T>): Promise<T> {
    try {
      return await command(null);
    } catch (thrown) {
      const error = asCommandError(thrown);
      if (error.code === 'locked') {
        await this.logIn(error);
        return this.run(command);
      }
      if (error.code !== 'not-allowed') throw error;
      return this.#ask<T>('approve', error, command);
    }
  }

  /** Asks somebody to log in. Rejects with `why` where the question was closed. */
  async logIn(why: CommandError): Promise<void> {
    await this.#ask('log-in', why, (entry) => this.backend.logIn(entry));
  }

  /** The PIN as it was typed. */
  async enter(entry: PinEntry): Promise<void> {
    const { question } = this;
    if (question === null || this.checking) return;
    this.checking = true;
    this.refused = null;
    try {
      await question.tryPin(entry);
    } catch (thrown) {
      this.refused = asCommandError(thrown);
      this.#noteWait(entry.personId, this.refused);
    } finally {
      this.checking = false;
    }
  }

  close(): void {
    this.question?.resolve(false);
  }

  async #ask<T>(purpose: PinPurpose, error: CommandError, command: (entry: PinEntry) => Promise<T>): Promise<T> {
    const turn = this.#tail.then(() => this.#askNow(purpose, error, command));
    this.#tail = turn.catch(() => null);
    return turn;
  }

  async #askNow<T>(purpose: PinPurpose, error: CommandError, command: (entry: PinEntry) => Promise<T>): Promise<T> {
    this.people = (await this.backend.people()).filter(({ role }) => purpose === 'log-in' || role === 'manager');
    this.refused = null;
    let outcome: { answer: T } | { error: CommandError } | null = null;
    const answered = await new Promise<boolean>((resolve) => {
      const tryPin = async (entry: PinEntry) => {
        try {
          outcome = { answer: await command(entry) };
        } catch (thrown) {
          const refused = asCommandError(thrown);
          // These are about the PIN and whose it is: another may do. All else is the command's own end.
          if (['wrong-pin', 'pin-wait', 'not-allowed'].includes(refused.code)) throw refused;
          outcome = { error: refused };
        }
        resolve(true);
      };
      this.question = { purpose, error, resolve, tryPin };
    });
    this.question = null;
    return given(answered ? outcome : null, error);
  }

  #noteWait(personId: number, { details }: CommandError): void {
    const waitS = details?.kind === 'wrong-pin' || details?.kind === 'pin-wait' ? details.waitS : 0;
    this.waits = new Map([...this.waits, [personId, Date.now() + waitS * 1000]]);
  }
}

function given<T>(outcome: { answer: T } | { error: CommandError } | null, why: CommandError): T {
  if (outcome === null) throw why;
  if ('error' in outcome) throw outcome.error;
  return outcome.answer;
}
