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
  error: {
    storage: 'This till cannot save.',
    'sale-changed': 'The sale changed meanwhile. Here it is as it stands now.',
    'sale-frozen': 'This sale is under payment and cannot be changed.',
    'unknown-article': 'This article is not in the catalogue.',
    'invalid-quantity': 'This quantity does not work for this article.',
    'invalid-card': 'This is not what the card reader gives. Use the reader; never type a card number.',
    'invalid-amount': 'This amount does not work. Check what was typed.',
    'over-due': 'That is more than what is due.',
    'intent-reused': 'This payment was already made with other figures. Look at it in Payments.',
    'not-found': 'It is not there any more.',
    'no-bank': 'No bank is set up for this till. Take cash.',
    'accepted-offline': 'The goods are handed over: this payment cannot be cancelled.',
    'already-final': 'This is settled already. Here it is as it stands now.',
    backup: 'No copy was made.',
    'card-may-be-charged': 'The card may be charged. Take nothing else for it before the bank has answered.',
    'category-in-use': 'There are articles in this category. Give them another one first.',
    clock: 'The clock of this machine is wrong. Set it and start again.',
    'count-needed': 'Count the drawer first.',
    export: 'The export could not be written.',
    import: 'The catalogue has errors. Nothing of it was imported.',
    'in-use': 'Another program uses this till’s folder.',
    'invalid-article': 'The article cannot be kept like this.',
    'invalid-barcode': 'The code was misread. Scan again, or search by name.',
    'invalid-discount': 'This discount or tip does not work. Type another.',
    'invalid-person': 'A person cannot be like this. Check the name; one manager must stay.',
    'invalid-pin': 'Choose another PIN: 4 to 12 digits that are not easy to guess.',
    'invalid-price': 'This price does not work. Type another.',
    'invalid-reason': 'Say why, in a few words.',
    'invalid-reference': 'The bank does not take this reference.',
    'invalid-return': 'More comes back than was sold. Type what is left.',
    'invalid-setting': 'The setting cannot have this value.',
    'invalid-text': 'This text is empty, too long or holds a card number. Type another.',
    'lab-refused': 'The bank in this program is stopped or did not answer.',
    locked: 'Log in with your PIN first.',
    'needs-look': 'Somebody must look at this payment first.',
    'no-lab': 'There is no bank lab: this till asks a bank of its own.',
    'no-printer': 'No printer is set. The receipt can be shown.',
    'no-shift': 'No shift is open for this cash. Open one first.',
    'not-allowed': 'You may not do this alone. Ask for a PIN.',
    'not-refundable': 'This payment moved no money. There is nothing to give back.',
    'nothing-to-undo': 'There is nothing to take back.',
    'offline-limit': 'Over the offline limit. Wait for the bank, or ask a manager.',
    'over-refund': 'That is more than is left to give back.',
    'pin-wait': 'Too many wrong PINs. Wait before the next try.',
    'price-needed': 'This article has no price of its own. Ask for it.',
    'printer-disconnected': 'The printer broke off. Look at the paper, and print again for a copy.',
    'printer-disk-full': 'The disk of the printer’s folder is full.',
    'printer-fault': 'The printer does not print. Look at it, and print again.',
    'printer-no-permission': 'The till may not write to the printer.',
    'printer-not-found': 'The printer is not there. Plug it in.',
    'printer-refused': 'The printer takes no jobs. Is it switched on?',
    'printer-timeout': 'The printer did not answer in time. Look for paper and an open cover.',
    'printer-unreachable': 'The printer cannot be reached. Look at its cable and network.',
    restored: 'This till was restored from a copy. The bank’s payments must be matched before the next one.',
    'shift-open': 'A shift is open already.',
    'wrong-pin': 'Wrong PIN.',
    internal: 'Something went wrong inside the till. Look at Payments before charging again.',
  },
};
