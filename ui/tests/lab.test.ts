import { waitFor } from '@testing-library/svelte';
import { describe, expect, it } from 'vitest';

import type { MemoryBackend } from '../src/lib/backend-memory';
import { byId, click, maybe, openWindow, readyToCharge, shown, textOf } from './window';

async function payHere(): Promise<void> {
  if (maybe('nav-sale')?.getAttribute('aria-current') !== 'page') await click('nav-sale');
  if (maybe('new-sale')) await click('new-sale');
  await click('article-1001');
  await shown('line-1');
  await readyToCharge();
  await click('confirm-pay');
}

const newest = (till: MemoryBackend) => till.made[0]!;

describe('the bank lab', () => {
  it('is not there where the till asks a bank of its own', async () => {
    const { MemoryBackend } = await import('../src/lib/backend-memory');
    const { render } = await import('@testing-library/svelte');
    const { default: App } = await import('../src/App.svelte');
    const till = new MemoryBackend({ answerAfterMs: 20 });
    till.bundled = false;
    render(App, { backend: till });
    await shown('article-1001');
    expect(maybe('nav-payments')).not.toBeNull();
    expect(maybe('nav-lab')).toBeNull();
    expect(document.body.textContent).not.toContain('lab');
  });

  it('shows a lost answer as one charge that the till does not know yet, and then as equal', async () => {
    const till = await openWindow();
    await click('nav-lab');
    await click('fault-drop_after_charge');
    await waitFor(() => expect(byId('lab-active').dataset['fault']).toBe('drop_after_charge'));
    await payHere();
    await shown('pay-unknown');
    expect(maybe('fault-on')).not.toBeNull();
    await click('nav-lab');
    const row = await shown(`lab-row-${newest(till).key}`);
    await waitFor(() => expect(row.dataset).toMatchObject({ till: 'unknown', bank: 'approved', charges: '1' }));
    expect(byId('lab-verdict').dataset['verdict']).toBe('ahead');
    expect(textOf('lab-verdict')).toContain(newest(till).shortCode);
    expect(byId('lab-till-approved').dataset['count']).toBe('0');
    expect(byId('lab-gateway-charges').dataset['count']).toBe('1');
    expect(textOf('lab-charge-count')).toBe('charge count: 1');
    await click('lab-clear');
    await waitFor(() => expect(byId('lab-verdict').dataset['verdict']).toBe('agree'));
    expect(textOf('lab-charge-count')).toBe('charge count: 1');
    expect(byId('lab-till-approved').dataset['count']).toBe('1');
    expect(maybe('fault-on')).toBeNull();
  });

  it('says loudly what must never be', async () => {
    const till = await openWindow();
    await payHere();
    await shown('pay-approved');
    till.lab.counted.set(newest(till).key, 2);
    await click('nav-lab');
    await waitFor(() => expect(byId('lab-verdict').dataset['verdict']).toBe('wrong'));
    expect(textOf('lab-charge-count')).toBe('charge count: 2');
  });

  it('stops the bank, which then can say nothing, and starts it again', async () => {
    const till = await openWindow();
    await click('nav-lab');
    await click('fault-stopped');
    await waitFor(() => expect(byId('lab-verdict').dataset['verdict']).toBe('unread'));
    expect(till.lab.running).toBe(false);
    expect((byId('fault-drain') as HTMLButtonElement).disabled).toBe(true);
    // Another fault needs a bank that runs.
    await click('fault-garbage');
    await waitFor(() => expect(byId('lab-active').dataset['fault']).toBe('garbage'));
    expect(till.lab.running).toBe(true);
    await click('lab-clear');
    await waitFor(() => expect(byId('lab-active').dataset['fault']).toBe(''));
  });

  it('has a button for every fault, with what it shows', async () => {
    await openWindow();
    await click('nav-lab');
    await shown('fault-hang');
    const faults = [...document.querySelectorAll<HTMLElement>('[data-testid^="fault-"]')];
    expect(faults).toHaveLength(13);
    for (const fault of faults) expect(fault.querySelector('span')?.textContent?.length).toBeGreaterThan(20);
  });
});

describe('the tour', () => {
  it('goes through five faults by what happens, and leaves no fault behind', async () => {
    const till = await openWindow();
    await click('nav-lab');
    await click('tour-start');
    for (const step of ['lost', 'away', 'page', 'slow', 'later']) {
      await waitFor(() => expect(byId('tour').dataset).toMatchObject({ step, phase: 'pay' }));
      await waitFor(() => expect(till.lab.active).not.toBeNull());
      await payHere();
      await waitFor(() => expect(byId('tour').dataset['phase']).toBe('open'));
      if (step === 'slow') till.settle(newest(till).key, { state: 'approved', approvalCode: '8F21K0' });
      else await click('tour-end-fault');
      await waitFor(() => expect(byId('tour').dataset['phase']).toBe('done'));
      expect(textOf('tour')).toContain(`${newest(till).shortCode} is approved. Charge count: 1.`);
      await click('tour-next');
    }
    await waitFor(() => expect(maybe('tour')).toBeNull());
    await shown('lab');
    expect(till.lab.active).toBeNull();
    expect(till.made).toHaveLength(5);
  });

  it('can be left at any time, and starts the bank that it stopped', async () => {
    const till = await openWindow();
    await click('nav-lab');
    await click('tour-start');
    await waitFor(() => expect(byId('tour').dataset['phase']).toBe('pay'));
    await payHere();
    await waitFor(() => expect(byId('tour').dataset['phase']).toBe('open'));
    await click('tour-end-fault');
    await waitFor(() => expect(byId('tour').dataset['phase']).toBe('done'));
    await click('tour-next');
    await waitFor(() => expect(till.lab.running).toBe(false));
    await click('tour-leave');
    await waitFor(() => expect(till.lab.running).toBe(true));
    expect(till.lab.active).toBeNull();
    expect(maybe('tour')).toBeNull();
  });
});
