import type { PinEntry } from './ipc.gen';

/**
 * Runs a command that may need more than the right of who is logged in: first as it is, and where the till
 * asks for a manager, once more with the PIN of one. Null where it did not come to it, which has been said.
 */
export type Approve = <T>(command: (approval: PinEntry | null) => Promise<T>) => Promise<T | null>;
