// The live stream of this page: server-sent events read with fetch, so that keep-alives are seen
// too and silence is told from quiet. What breaks is taken up again where it broke.

import { clockOf, now } from "./times.js";

const SILENT_AFTER = 25_000;
const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 15_000;

/**
 * Follow the stream that the page names.
 * @param {Object<string, function(Object)>} handlers by event; `resync` must load the state anew
 * @param {{pauseHidden?: boolean}} options let go of the connection while nobody looks
 */
export function follow(handlers, { pauseHidden = false } = {}) {
  const shown = document.getElementById("stream");
  if (!shown) return;
  new Follower(shown, handlers, pauseHidden).start();
}

class Follower {
  constructor(shown, handlers, pauseHidden) {
    this.shown = shown;
    this.words = document.getElementById("stream-words");
    this.address = shown.dataset.address;
    this.position = shown.dataset.position;
    this.brokerAway = shown.dataset.broker === "away";
    this.handlers = handlers;
    this.pauseHidden = pauseHidden;
    this.wait = FIRST_WAIT;
    this.heard = now();
    this.connection = null;
  }

  start() {
    this.run();
    setInterval(() => this.watch(), 1_000);
    addEventListener("pagehide", () => this.connection?.abort());
    addEventListener("pageshow", (event) => event.persisted && location.reload());
    addEventListener("online", () => this.wake?.());
    document.addEventListener("visibilitychange", () => {
      if (!this.pauseHidden) return;
      if (document.hidden) this.connection?.abort();
      else this.wake?.();
    });
  }

  async run() {
    for (;;) {
      const ended = await this.once();
      if (ended) return this.tell("stale", "Signed out. Load the page to sign in.");
      this.stale();
      await this.pause();
    }
  }

  /** One connection; true if it makes no sense to try again. */
  async once() {
    this.connection = new AbortController();
    try {
      const headers = { Accept: "text/event-stream" };
      if (this.position) headers["Last-Event-ID"] = this.position;
      const answer = await fetch(this.address, { headers, cache: "no-store", signal: this.connection.signal });
      if (answer.status === 401) return true;
      if (!answer.ok) return false;
      await this.read(answer.body.pipeThrough(new TextDecoderStream()).getReader());
    } catch {
      // refused, cut or given up: all the same to who looks at the page
    }
    return false;
  }

  async read(reader) {
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      this.alive();
      const blocks = (rest + value).split(/\r\n\r\n|\n\n|\r\r/);
      rest = blocks.pop();
      for (const block of blocks) this.take(block);
    }
  }

  take(block) {
    let kind = "message";
    const data = [];
    for (const line of block.split(/\r\n|\n|\r/)) {
      const colon = line.indexOf(":");
      if (colon === 0) continue;
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") kind = value;
      else if (field === "data") data.push(value);
      else if (field === "id") this.position = value;
    }
    if (!data.length) return;
    const message = JSON.parse(data.join("\n"));
    if (kind === "stale") this.brokerAway = Date.parse(message.since) || now();
    if (kind === "resync") this.brokerAway = false;
    this.say();
    this.handlers[kind]?.(message);
  }

  alive() {
    this.heard = now();
    this.wait = FIRST_WAIT;
    this.say();
  }

  say() {
    if (this.brokerAway) this.stale(this.brokerAway === true ? undefined : this.brokerAway);
    else this.tell("live", "Live");
  }

  watch() {
    if (this.shown.dataset.state === "live" && now() - this.heard > SILENT_AFTER) {
      this.stale();
      this.connection?.abort();
    }
  }

  stale(since = this.heard) {
    this.tell("stale", `Stale since ${clockOf(since)}`);
  }

  tell(state, words) {
    if (this.shown.dataset.state !== state) this.shown.dataset.state = state;
    if (this.words.textContent !== words) this.words.textContent = words;
  }

  async pause() {
    const until = document.hidden && this.pauseHidden ? 2 ** 30 : this.wait * (0.75 + Math.random() / 2);
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
    await new Promise((wake) => {
      this.wake = wake;
      setTimeout(wake, until);
    });
  }
}
