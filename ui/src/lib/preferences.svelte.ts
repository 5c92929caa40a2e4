import { catalogues, type Catalogue } from '../i18n';
import { changeKeys, defaultKeys, readKeys, writeKeys, type Chord, type KeyMap, type Refusal, type Use } from './keys';
import { formatAmount, formatMoney, tagOf, type Locale } from './money';
import { ageOf, formatClock, formatDateTime } from './time';

export type Theme = 'system' | 'light' | 'dark';
/** Of what the text has by itself, in percent. */
export type TextSize = '100' | '125' | '150' | '200';

const THEME = 'kassa.theme';
const LANGUAGE = 'kassa.language';
const TEXT_SIZE = 'kassa.text-size';
export const themes: readonly Theme[] = ['system', 'light', 'dark'];
export const textSizes: readonly TextSize[] = ['100', '125', '150', '200'];
const KEYS = 'kassa.keys';
const SCANNER_PREFIX = 'kassa.scanner-prefix';

/** Storage may be switched off in a browser; the window then forgets and goes on. */
function recall(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function keep(name: string, value: string): void {
  try {
    localStorage.setItem(name, value);
  } catch {
    // Nothing depends on it but the look of the next start.
  }
}

/** Language, theme and text size of this window, and everything that is formatted by them. */
export class Preferences {
  locale = $state<Locale>('en');
  theme = $state<Theme>('system');
  textSize = $state<TextSize>('100');
  keys = $state.raw<KeyMap>(defaultKeys);
  /** The sign that the scanner is set to send first; null for none. */
  scannerPrefix = $state<string | null>(null);
  #systemDark = $state(false);

  text: Catalogue = $derived(catalogues[this.locale]);
  dark = $derived(this.theme === 'dark' || (this.theme === 'system' && this.#systemDark));
  decimalSign = $derived(new Intl.NumberFormat(tagOf(this.locale), { minimumFractionDigits: 1 }).format(0).replace(/0/g, ''));

  constructor() {
    const language = recall(LANGUAGE) ?? navigator.language;
    this.locale = language.startsWith('ru') ? 'ru' : 'en';
    const theme = recall(THEME);
    this.theme = themes.find((each) => each === theme) ?? 'system';
    const size = recall(TEXT_SIZE);
    this.textSize = textSizes.find((each) => each === size) ?? '100';
    this.keys = readKeys(recall(KEYS));
    this.scannerPrefix = recall(SCANNER_PREFIX) || null;
    const system = typeof matchMedia === 'function' ? matchMedia('(prefers-color-scheme: dark)') : null;
    this.#systemDark = system?.matches ?? false;
    system?.addEventListener('change', (event) => (this.#systemDark = event.matches));
  }

  chooseLanguage(locale: Locale): void {
    this.locale = locale;
    keep(LANGUAGE, locale);
  }

  chooseTheme(theme: Theme): void {
    this.theme = theme;
    keep(THEME, theme);
  }

  chooseTextSize(size: TextSize): void {
    this.textSize = size;
    keep(TEXT_SIZE, size);
  }

  /** Gives a use other keys, or says why not. */
  changeKeys(use: Use, chords: readonly Chord[]): Refusal | null {
    const changed = changeKeys(this.keys, use, chords);
    if ('refused' in changed) return changed.refused;
    this.keys = changed.map;
    keep(KEYS, writeKeys(this.keys));
    return null;
  }

  resetKeys(): void {
    this.keys = defaultKeys;
    keep(KEYS, writeKeys(this.keys));
  }

  setScannerPrefix(prefix: string | null): void {
    this.scannerPrefix = prefix || null;
    keep(SCANNER_PREFIX, prefix ?? '');
  }

  amount(amount: number, currency: string): string {
    return formatAmount(amount, currency, this.locale);
  }

  money(amount: number, currency: string): string {
    return formatMoney(amount, currency, this.locale);
  }

  age(time: string, now: number): string {
    return this.text.age(ageOf(time, now));
  }

  clock(time: string): string {
    return formatClock(time, this.locale);
  }

  dateTime(time: string): string {
    return formatDateTime(time, this.locale);
  }
}
