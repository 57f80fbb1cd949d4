// Reloads the page's state after events were lost.

const FIRST_WAIT = 1_000;
const MAX_WAIT = 30_000;

/**
 * Run one load at a time. A request during a load causes another load after it, because the first
 * may have read older state. Failed loads are retried with backoff.
 * @param {function(): Promise<boolean>} load resolves to true if the state was loaded
 * @returns {function(): Promise<void>} requests a load; resolves when no load is pending
 */
export function oneAtATime(load) {
  let requested = false;
  let running = null;

  async function work() {
    let wait = FIRST_WAIT;
    while (requested) {
      requested = false;
      if (await load().catch(() => false)) continue;
      requested = true;
      await new Promise((wake) => setTimeout(wake, wait));
      wait = Math.min(2 * wait, MAX_WAIT);
    }
    running = null;
  }

  return function request() {
    requested = true;
    running ??= work();
    return running;
  };
}
