import { describe, expect, it } from 'vitest';

import { Trouble } from '../src/lib/trouble.svelte';

const full = { code: 'storage', message: 'No space left on the disk', retryable: true };
const readOnly = { code: 'storage', message: 'Read-only file system', retryable: true };

const fail = (error: unknown) => () => new Promise<void>((_, refuse) => refuse(error));

describe('whether the till can save', () => {
  it('is said by a probe, and by no other command that goes through', async () => {
    const trouble = new Trouble();
    await trouble.write(fail(full));
    expect(trouble.storage).toMatchObject(full);
    await trouble.write(async () => 'nothing had to be written');
    expect(trouble.storage).toMatchObject(full);
    expect(await trouble.probe(fail(readOnly))).toBe(false);
    expect(trouble.storage).toMatchObject(readOnly);
    expect(await trouble.probe(async () => {})).toBe(true);
    expect(trouble.storage).toBeNull();
  });

  it('is not said by a probe that ran while a click failed', async () => {
    const trouble = new Trouble();
    await trouble.write(fail(full));
    let succeed = () => {};
    const probing = trouble.probe(() => new Promise<void>((done) => (succeed = done)));
    await trouble.write(fail(readOnly));
    succeed();
    expect(await probing).toBe(false);
    expect(trouble.storage).toMatchObject(readOnly);
  });
});
