import './styles/tokens.css';
import './styles/base.css';

import { mount } from 'svelte';

import App from './App.svelte';
import type { Backend } from './lib/backend';
import { tauriBackend } from './lib/backend-tauri';
import Outside from './screens/Outside.svelte';

const inDesktop = '__TAURI_INTERNALS__' in window;
/** Without the desktop shell, only `npm run dev` and the demo build have a till: one in memory. */
const withDemo = import.meta.env.DEV || import.meta.env.MODE === 'demo';

async function chooseBackend(): Promise<Backend | null> {
  if (inDesktop) return tauriBackend;
  if (!withDemo) return null;
  const { demoBackend } = await import('./lib/demo');
  return demoBackend(new URLSearchParams(location.search));
}

const target = document.getElementById('app');
if (target === null) throw new Error('the page has no #app');

const backend = await chooseBackend();
if (backend) mount(App, { target, props: { backend } });
else mount(Outside, { target });

if (withDemo && !inDesktop) {
  const { playDemo } = await import('./lib/demo');
  await playDemo(new URLSearchParams(location.search));
}
