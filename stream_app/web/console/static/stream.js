// The page's live stream: server-sent events read with fetch, so that keep-alive comments are seen
// and a dead connection can be distinguished from an idle one. Reconnects resume after the last event.

import { clockOf, now } from "./times.js";

const SILENT_AFTER = 25_000;
const FIRST_WAIT = 1_000;
const MAX_WAIT = 15_000;

/**
 * Follow the stream whose address is on the page.
 * @param {Object<string, function(Object)>} handlers by event; `resync` must reload the state
 * @param {{pauseHidden?: boolean}} options disconnect while the page is hidden
 */
export function follow(handlers, { pauseHidden = false } = {}) {
  const status = document.getElementById("stream");
  if (!status) return;
  new Follower(status, handlers, pauseHidden).start();
}

class Follower {
  constructor(status, handlers, pauseHidden) {
    this.status = status;
    this.statusText = document.getElementById("stream-words");
    this.address = status.dataset.address;
    this.position = status.dataset.position;
    this.brokerUnavailable = status.dataset.broker === "unavailable";
    this.handlers = handlers;
    this.pauseHidden = pauseHidden;
    this.wait = FIRST_WAIT;
    this.lastHeard = now();
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
      const ended = await this.connect();
      if (ended) return this.setStatus("stale", "Signed out. Reload the page to sign in.");
      this.stale();
      await this.pause();
    }
  }

  /** Open one connection and read it to its end; true if reconnecting is pointless. */
  async connect() {
    this.connection = new AbortController();
    try {
      const headers = { Accept: "text/event-stream" };
      if (this.position) headers["Last-Event-ID"] = this.position;
      const answer = await fetch(this.address, { headers, cache: "no-store", signal: this.connection.signal });
      if (answer.status === 401) return true;
      if (!answer.ok) return false;
      await this.read(answer.body.pipeThrough(new TextDecoderStream()).getReader());
    } catch {
      // refused, broken or aborted: handled alike by reconnecting
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
      for (const block of blocks) this.dispatch(block);
    }
  }

  dispatch(block) {
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
    if (kind === "stale") this.brokerUnavailable = Date.parse(message.since) || now();
    if (kind === "resync") this.brokerUnavailable = false;
    this.showStatus();
    this.handlers[kind]?.(message);
  }

  alive() {
    this.lastHeard = now();
    this.wait = FIRST_WAIT;
    this.showStatus();
  }

  showStatus() {
    if (this.brokerUnavailable) this.stale(this.brokerUnavailable === true ? undefined : this.brokerUnavailable);
    else this.setStatus("live", "Live");
  }

  watch() {
    if (this.status.dataset.state === "live" && now() - this.lastHeard > SILENT_AFTER) {
      this.stale();
      this.connection?.abort();
    }
  }

  stale(since = this.lastHeard) {
    this.setStatus("stale", `Stale since ${clockOf(since)}`);
  }

  setStatus(state, words) {
    if (this.status.dataset.state !== state) this.status.dataset.state = state;
    if (this.statusText.textContent !== words) this.statusText.textContent = words;
  }

  async pause() {
    const until = document.hidden && this.pauseHidden ? 2 ** 30 : this.wait * (0.75 + Math.random() / 2);
    this.wait = Math.min(this.wait * 2, MAX_WAIT);
    await new Promise((wake) => {
      this.wake = wake;
      setTimeout(wake, until);
    });
  }
}
