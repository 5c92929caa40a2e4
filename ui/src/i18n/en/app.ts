// The app around the sale, in English.

import type { Age } from '../../lib/time';

export const app = {
  app: {
    name: 'Kassa',
    nav: 'Screens',
    startFailed: 'The till did not open.',
    tryAgain: 'Try again',
    outside: 'Kassa runs in a window of its own. Start the Kassa program.',
    close: 'Close',
    copied: 'Copied',
    copy: 'Copy',
    notCopied: 'Not copied. Select the text instead.',
    dismiss: 'Dismiss',
  },
  nav: { sale: 'Sale', payments: 'Payments' },
  top: {
    language: 'Switch to Russian',
    languageCode: 'EN',
    theme: { system: 'Theme: as the system', light: 'Theme: light', dark: 'Theme: dark' },
  },
  age: (age: Age): string => {
    switch (age.unit) {
      case 'second':
        return '<1 min';
      case 'minute':
        return `${age.value} min`;
      case 'hour':
        return `${age.value} h`;
      case 'day':
        return `${age.value} d`;
    }
  },
  chip: {
    label: (text: string) => `${text}. Open payments`,
    ok: 'All settled',
    busy: (n: number) => `Sending ${n}`,
    waiting: (n: number, amounts: string, age: string | null) =>
      `${n} waiting, ${amounts}${age === null ? '' : `, oldest ${age}`}`,
    waitingShort: (n: number) => `${n} waiting`,
    paused: (n: number) => (n === 0 ? 'Paused' : `Paused, ${n} waiting`),
    attention: (n: number) => (n === 1 ? '1 needs a look' : `${n} need a look`),
  },
  keypad: {
    label: 'Keypad',
    backspace: 'Delete last digit',
    decimal: 'Decimal sign',
  },
  storage: {
    headline: 'This till cannot save. Payments are locked.',
    second: (reason: string) => `${reason}. Open sales are kept.`,
    details: 'Details',
    tryAgain: 'Try again',
    detailsTitle: 'Why this till cannot save',
    detailsHint: 'Free some space or make the folder writable. Payments open again by themselves.',
    folder: 'Folder',
    reason: 'Reason',
  },
};
