import { afterEach, beforeEach, vi } from 'vitest';

beforeEach(() => {
  localStorage.clear();
  localStorage.setItem('kassa.language', 'en');
});

afterEach(() => {
  vi.useRealTimers();
});
