/// <reference types="vitest/config" />
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { svelteTesting } from '@testing-library/svelte/vite';
import { defineConfig } from 'vite';

// The same policy as the desktop shell's, so that a page which breaks it breaks here first.
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export default defineConfig(({ mode }) => ({
  base: './',
  plugins: [svelte(), ...(mode === 'test' ? [svelteTesting()] : [])],
  build: {
    target: 'safari16',
    outDir: 'dist',
    emptyOutDir: true,
    // A data: URL would need its own word in the content policy.
    assetsInlineLimit: 0,
    // The polyfill is an inline script, which the content policy refuses.
    modulePreload: { polyfill: false },
  },
  server: { port: 5173, strictPort: true },
  preview: { headers: { 'Content-Security-Policy': policy } },
  test: {
    environment: 'jsdom',
    include: ['tests/**/*.test.ts'],
    setupFiles: ['tests/setup.ts'],
    restoreMocks: true,
    testTimeout: 30_000,
  },
}));
