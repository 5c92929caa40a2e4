import type { Backend } from './backend';
import type { Trouble } from './trouble.svelte';
import type { Session } from './types';

/** Who stands at the till, as the till says. */
export class PeopleStore {
  session = $state.raw<Session | null>(null);

  /** Answers can overtake each other; what was told last stands. */
  #asked = 0;

  constructor(
    readonly backend: Backend,
    readonly trouble: Trouble,
  ) {}

  async load(): Promise<void> {
    const asked = ++this.#asked;
    const session = await this.trouble.read(() => this.backend.session());
    if (session && asked === this.#asked) this.session = session;
  }

  /** An answer of the till that says who is logged in now. */
  told(session: Session): void {
    this.#asked += 1;
    this.session = session;
  }

  async lock(): Promise<void> {
    const session = await this.trouble.write(() => this.backend.lock());
    if (session) this.told(session);
  }
}
