/** So long a panel that came up takes nothing: what is pressed now was meant for the one before. */
export const RESULT_GUARD_MS = 500;
/** So long the articles take nothing after a panel closed: the second click of a double click is not an article. */
export const SHELF_GUARD_MS = 400;

/** Holds back what was pressed for a panel that is gone. */
export class Guard {
  /** True while nothing is taken. */
  settling = $state(false);

  #timer: ReturnType<typeof setTimeout> | undefined;
  #turnedAt = 0;
  #seriesAt = 0;

  /** What the screen shows is another thing from now on, and takes nothing for `ms`. */
  turn(ms: number): void {
    this.#turnedAt = performance.now();
    clearTimeout(this.#timer);
    this.settling = ms > 0;
    if (ms > 0) this.#timer = setTimeout(() => (this.settling = false), ms);
  }

  /** Whether a click counts, told the number that it is in its series: of a double click, 1 and then 2. */
  takes(count: number): boolean {
    if (count <= 1) this.#seriesAt = performance.now();
    return !this.settling && this.#seriesAt >= this.#turnedAt;
  }
}
