import { cleanup, render } from '@testing-library/svelte';
import { afterEach, describe, expect, it } from 'vitest';

import App from '../src/App.svelte';
import { demoBackend, playDemo } from '../src/lib/demo';
import { demoStates } from '../src/lib/demo-states';
import { seriousFindings } from './axe';
import { pause, shown } from './window';

afterEach(cleanup);

async function open(query: string): Promise<void> {
  const ask = new URLSearchParams(query);
  render(App, { backend: await demoBackend(ask) });
  document.title = 'Kassa';
  await shown('cart');
  await playDemo(ask);
  await pause(120);
}

describe('the net of axe', () => {
  it('catches a button without a name, and an image without one', async () => {
    document.body.innerHTML = '<main><button type="button"></button><img src="x.png"></main>';
    const found = await seriousFindings();
    document.body.innerHTML = '';
    expect(found.join('\n')).toMatch(/button-name[\s\S]*image-alt/);
  });
});

describe('what shuts nobody out', () => {
  it.each(demoStates.map(({ name, query, shows }) => [name, query, shows]))('%s', async (_, query, shows) => {
    await open(query);
    await shown(shows);
    expect(await seriousFindings()).toEqual([]);
  });

  it('is shown by every state of the list under its own name', () => {
    const names = demoStates.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});
