// The app around the sale, in English.

import type { Age } from '../../lib/time';
import { count } from './words';

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
  nav: { sale: 'Sale', payments: 'Payments', lab: 'Bank lab' },
  top: {
    look: 'Language and look',
    lock: 'Lock',
    backlog: (settled: number, total: number) => `After the outage: ${settled} of ${total} settled`,
    lockPerson: (name: string) => `${name}. Lock the till`,
  },
  look: {
    title: 'Language and look',
    language: 'Language',
    theme: 'Theme',
    themes: { system: 'As the system', light: 'Light', dark: 'Dark' },
    textSize: 'Size of text',
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
  close: {
    headline: (n: number) => `${count(n, 'payment', 'payments')} not yet settled`,
    second: 'They stay safe and go on at next start.',
    stay: 'Stay',
    anyway: 'Close anyway',
  },
  progress: {
    of: (value: number, total: number) => `${value} of ${total}`,
    going: (value: number) => `${value} so far`,
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
