import { asCommandError } from './backend';
import type { CommandError } from './types';

export type Answer<T> = { status: 'ok'; data: T } | { status: 'error'; error: CommandError };

/** The data of an answer; whatever else comes is thrown as a `CommandError`. */
export async function data<T>(asked: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await asked;
  } catch (thrown) {
    throw asCommandError(thrown);
  }
  if (answer.status === 'error') throw asCommandError(answer.error);
  return answer.data;
}
