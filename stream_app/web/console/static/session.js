// Keeps a session's page up to date: new turns, final scores replacing provisional ones, the curve
// and the alerts.

import { announce, sentenceOf } from "./announce.js";
import { oneAtATime } from "./reload.js";
import { setStop, watchCurve } from "./curve.js";
import { load, loadElement } from "./fragment.js";
import { keepOpenCard, prepareRatingCards, watchRatingCards } from "./rating_card.js";
import { follow } from "./stream.js";
import { watchWindows } from "./window.js";

const top = document.getElementById("now");
const turns = document.getElementById("turns");
const newBelow = document.getElementById("new-below");
const { session, page, lastPage, pageTurns } = top.dataset;
const address = `/sessions/${encodeURIComponent(session)}`;
const NEAR_END = 240;
const REFRESH_DELAY = 700;
const SETTLING_FRAMES = 4;
const waiting = new Set();
let working = false;
let refreshing = 0;
let renewing = 0;

function isHere(seq) {
  const block = Math.floor(seq / Number(pageTurns));
  return block === Number(page) || (page === lastPage && block > Number(page));
}

async function work() {
  if (working) return;
  working = true;
  while (waiting.size) {
    const [seq] = waiting;
    waiting.delete(seq);
    const turn = await loadElement(`${address}/turns/${seq}`, "li.turn").catch(() => null);
    if (turn) put(seq, turn);
  }
  working = false;
}

function put(seq, turn) {
  document.getElementById("no-turns")?.remove();
  prepareRatingCards(turn);
  const old = document.getElementById(`turn-${seq}`);
  if (old) return replace(old, turn);
  const atEnd = endsInView();
  const next = [...turns.children].find((other) => Number(other.dataset.seq) > seq);
  turns.insertBefore(turn, next ?? null);
  if (next) return;
  if (atEnd) turn.scrollIntoView({ block: "nearest" });
  else newBelow.hidden = false;
}

/** Whether the end of the transcript is in view; it is not the end of the page. */
function endsInView() {
  const last = turns.lastElementChild?.getBoundingClientRect().bottom ?? 0;
  return last < Math.min(innerHeight, turns.getBoundingClientRect().bottom) + NEAR_END;
}

function replace(old, turn) {
  if (old.dataset.stage === "final" && turn.dataset.stage !== "final") return; // older than the one shown
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  for (const name of ["all", "how"]) {
    if (old.querySelector(`.${name}[open]`)) turn.querySelector(`.${name}`)?.setAttribute("open", "");
  }
  turn.classList.toggle("is-firing", old.classList.contains("is-firing"));
  keepOpenCard(old, turn);
  old.replaceWith(turn);
  if (!focused) return;
  if (focused.isConnected) return focused.focus({ preventScroll: true });
  const like = focused.tagName === "SUMMARY" ? ".how > summary" : focused.className ? `.${focused.classList[0]}` : "article";
  const same = turn.querySelector(like);
  same?.focus({ preventScroll: true });
}

function refresh() {
  refreshing ||= setTimeout(async () => {
    const fresh = await loadElement(`${address}/now?page=${page}`, "#now-fresh").catch(() => null);
    refreshing = 0;
    if (fresh) showTop(fresh);
  }, REFRESH_DELAY);
}

function refreshHandOver() {
  renewing ||= setTimeout(async () => {
    const fresh = await loadElement(`${address}/interventions`, "#hand-over-list").catch(() => null);
    renewing = 0;
    showHandOver(fresh);
  }, REFRESH_DELAY);
}

/** Renew the list without the form for a note, which may have words in it. */
function showHandOver(fresh) {
  const old = document.getElementById("hand-over-list");
  if (!old || !fresh) return;
  const focused = old.contains(document.activeElement);
  old.replaceWith(fresh);
  if (focused) fresh.querySelector("button")?.focus({ preventScroll: true });
}

/** What tells one control of the renewed parts from another. */
function signOf(control) {
  const named = ["href", "value", "aria-label"].map((name) => control.getAttribute(name));
  return [control.tagName, ...named, control.tagName === "SUMMARY" ? control.parentElement.id : ""].join();
}

/** Renew facts, alerts and scores; the forms between them, which may have words in them, stay. */
function showTop(fresh) {
  const focused = document.activeElement?.closest("[data-part]") ? document.activeElement : null;
  const seq = top.querySelector(".curve a[tabindex='0']")?.dataset.seq;
  const wasLast = seq === [...top.querySelectorAll(".curve a[data-seq]")].at(-1)?.dataset.seq;
  for (const part of top.querySelectorAll("[data-part]")) {
    const newer = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
    for (const one of part.querySelectorAll("details[id]")) {
      const same = newer.querySelector(`#${CSS.escape(one.id)}`);
      if (same) same.open = one.open;
    }
    part.replaceChildren(...newer.childNodes);
  }
  setStop(wasLast && !focused ? undefined : seq);
  if (!focused) return;
  const same = [...top.querySelectorAll("[data-part] :is(a, summary, button, [tabindex])")].find((one) => signOf(one) === signOf(focused));
  same?.focus({ preventScroll: true });
}

/** Open the transcript where the alert fired, otherwise at the newest turn; not where it fills the page. */
function showFirst() {
  const firing = document.getElementById(`turn-${turns.dataset.first}`);
  firing?.classList.add("is-firing");
  const first = firing ?? ("live" in turns.dataset ? turns.lastElementChild : null);
  if (location.hash || !first || turns.scrollHeight <= turns.clientHeight) return;
  // Turns out of view have a guessed height, so that the first step may miss.
  const step = (left) => {
    const place = first.getBoundingClientRect();
    const frame = turns.getBoundingClientRect();
    turns.scrollTop += place.top + place.height / 2 - frame.top - frame.height / 2;
    if (left) requestAnimationFrame(() => step(left - 1));
  };
  step(SETTLING_FRAMES);
}

/** Show the turn that the address names: the browser's own jump may miss, as above. */
function showNamed(left = SETTLING_FRAMES) {
  const named = document.getElementById(location.hash.slice(1));
  if (!named?.classList.contains("turn")) return;
  named.scrollIntoView({ block: "nearest" });
  if (left) requestAnimationFrame(() => showNamed(left - 1));
}
addEventListener("hashchange", () => showNamed());

const reload = oneAtATime(async () => {
  const fresh = await load(location.href);
  if (!fresh) return false;
  for (const turn of fresh.querySelectorAll("li.turn")) put(Number(turn.dataset.seq), document.adoptNode(turn));
  showTop(fresh);
  showHandOver(fresh.getElementById("hand-over-list"));
  refresh();
  return true;
});

newBelow.addEventListener("click", () => {
  newBelow.hidden = true;
  const last = turns.lastElementChild;
  last.scrollIntoView({ block: "center" });
  last.querySelector("article").focus({ preventScroll: true });
});
addEventListener(
  "scroll",
  () => {
    if (endsInView()) newBelow.hidden = true;
  },
  { passive: true, capture: true }, // the transcript has a scroll bar of its own
);
document.addEventListener("reviewed", ({ detail }) => {
  waiting.add(detail.seq);
  work();
});

showFirst();
watchCurve(top);
watchWindows();
watchRatingCards(session);
prepareRatingCards(document);
follow(
  {
    turn({ seq }) {
      if (!isHere(seq)) return;
      waiting.add(seq);
      work();
    },
    session: refresh,
    alert(alert) {
      const sentence = sentenceOf(alert);
      if (sentence) announce(sentence);
      refresh();
    },
    "alert-action": refresh,
    intervention: refreshHandOver,
    resync: reload,
  },
  { pauseHidden: true },
);
