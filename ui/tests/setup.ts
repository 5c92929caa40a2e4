import { configure } from '@testing-library/svelte';
import { afterEach, beforeEach, vi } from 'vitest';

// A loaded machine is slow, and not wrong.
configure({ asyncUtilTimeout: 5000 });

beforeEach(() => {
  localStorage.clear();
  localStorage.setItem('kassa.language', 'en');
});

afterEach(() => {
  vi.useRealTimers();
});
