// Who works at the in-memory till, and who may do what. Without people everybody may everything, as on a first start.

import type { CommandError, Person, PinEntry, Right, Session } from './types';

export type MemoryPerson = { name: string; role: Person['role']; pin: string };

const TRIES_FREE = 5;
const WAIT_S = 30;

export class MemoryPeople {
  /** What a cashier may not do alone. */
  denied = new Set<Right>(['price_override']);
  /** The highest discount of a cashier, in percent; amounts in minor units. */
  discountMax = { percent: 10, amount: 500 };
  #people: (MemoryPerson & { id: number; wrong: number; waitUntil: number })[];
  #loggedIn: number | null = null;

  constructor(people: MemoryPerson[] = []) {
    this.#people = people.map((person, index) => ({ ...person, id: index + 1, wrong: 0, waitUntil: 0 }));
    // A cashier stands there already, unless there is none.
    this.#loggedIn = this.#people.find(({ role }) => role === 'cashier')?.id ?? null;
  }

  list(): Person[] {
    return this.#people.map(({ id, name, role }) => ({ id, name, role }));
  }

  session(): Session {
    const person = this.list().find(({ id }) => id === this.#loggedIn) ?? null;
    return { locked: person === null && this.#people.length > 0, person };
  }

  lock(): void {
    this.#loggedIn = null;
  }

  logIn(entry: PinEntry): Session {
    this.#check(entry);
    this.#loggedIn = entry.personId;
    return this.session();
  }

  /** Refuses a change where nobody is logged in. */
  acting(): void {
    if (this.session().locked) throw refusal('locked', 'the till is locked: log in with your PIN');
  }

  /** Refuses what neither who is logged in nor who gave the PIN may do. */
  allow(right: Right, within: boolean, approval: PinEntry | null | undefined): void {
    this.acting();
    const approver = approval ? this.#check(approval) : null;
    const may = (role: Person['role'] | undefined) => role !== 'cashier' || (within && !this.denied.has(right));
    if (may(this.session().person?.role)) return;
    if (approver === null || !may(approver.role)) throw refusal('not-allowed', `${right} needs a manager's PIN`);
  }

  #check({ personId, pin }: PinEntry): MemoryPerson {
    const person = this.#people.find(({ id }) => id === personId);
    if (!person) throw refusal('not-found', 'person');
    const left = Math.ceil((person.waitUntil - Date.now()) / 1000);
    if (left > 0) throw { ...refusal('pin-wait', 'too many'), details: { kind: 'pin-wait', waitS: left } };
    if (person.pin === pin) {
      person.wrong = 0;
      return person;
    }
    person.wrong += 1;
    const waitS = person.wrong >= TRIES_FREE ? WAIT_S : 0;
    person.waitUntil = Date.now() + waitS * 1000;
    throw { ...refusal('wrong-pin', 'wrong'), details: { kind: 'wrong-pin', triesLeft: Math.max(0, TRIES_FREE - person.wrong), waitS } };
  }
}

function refusal(code: CommandError['code'], message: string): CommandError {
  return { code, message, retryable: false, details: null };
}
