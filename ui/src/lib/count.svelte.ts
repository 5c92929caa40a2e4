/** What is typed before an article: `5*` is five of the next one, digits alone are an article's number. */
export class Count {
  typed = $state('');
  /** How many of the next article; null where nothing was said. */
  times = $state<string | null>(null);

  type(key: string): boolean {
    if (key === 'backspace') {
      if (this.typed === '') return this.clear();
      this.typed = this.typed.slice(0, -1);
      return true;
    }
    const next = this.typed + key;
    if (!/^\d{1,20}(\.\d{0,3})?$/.test(next)) return false;
    this.typed = next;
    return true;
  }

  /** The sign of times after digits. */
  multiply(): boolean {
    const count = this.typed.replace(/\.$/, '').replace(/^0+(?=\d)/, '');
    if (!/[1-9]/.test(count) || count.length > 9) return false;
    this.typed = '';
    this.times = count;
    return true;
  }

  /** Gives the count for the article that comes now. Digits alone are none. */
  takeTimes(): string | null {
    const { times } = this;
    this.clear();
    return times;
  }

  /** The number that was typed, where it is an article's. */
  takeCode(): string | null {
    const code = this.typed;
    if (code === '') return null;
    this.typed = '';
    return code;
  }

  /** True where there was something. */
  clear(): boolean {
    const some = this.typed !== '' || this.times !== null;
    this.typed = '';
    this.times = null;
    return some;
  }
}
