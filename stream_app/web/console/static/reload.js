// Loading a page's state anew, when events were lost to it.

const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 30_000;

/**
 * One load at a time. Whoever asks during a load gets another after it, because what the first one
 * read may be older than what was lost; a load that failed is tried again.
 * @param {function(): Promise<boolean>} load true if the state is on the page
 * @returns {function(): Promise<void>} asks for a load; kept when nothing is left to do
 */
export function oneAtATime(load) {
  let asked = false;
  let running = null;

  async function work() {
    let wait = FIRST_WAIT;
    while (asked) {
      asked = false;
      if (await load().catch(() => false)) continue;
      asked = true;
      await new Promise((wake) => setTimeout(wake, wait));
      wait = Math.min(2 * wait, LONGEST_WAIT);
    }
    running = null;
  }

  return function ask() {
    asked = true;
    running ??= work();
    return running;
  };
}
