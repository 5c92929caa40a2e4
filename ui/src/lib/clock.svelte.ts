/** The time that ages and waits are shown by. */
export class Clock {
  now = $state(Date.now());

  start(): () => void {
    const timer = setInterval(() => (this.now = Date.now()), 500);
    return () => clearInterval(timer);
  }
}
