// Keeps one session's page right: turns as they come, final scores in the place of provisional
// ones, the curve and the alerts above them.

import { announce, sentenceOf } from "./announce.js";
import { oneAtATime } from "./reload.js";
import { setStop, watchCurve } from "./curve.js";
import { load, loadElement } from "./fragment.js";
import { offerJudging, watchJudging } from "./rating_dialog.js";
import { follow } from "./stream.js";
import { watchWindows } from "./window.js";

const top = document.getElementById("now");
const turns = document.getElementById("turns");
const newBelow = document.getElementById("new-below");
const { session, page, lastPage, pageTurns } = top.dataset;
const address = `/sessions/${encodeURIComponent(session)}`;
const NEAR_END = 240;
const REFRESH_WITHIN = 700;
const waiting = new Set();
let working = false;
let refreshing = 0;

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
  offerJudging(turn);
  const old = document.getElementById(`turn-${seq}`);
  if (old) return replace(old, turn);
  const atEnd = endsInView();
  const next = [...turns.children].find((other) => Number(other.dataset.seq) > seq);
  turns.insertBefore(turn, next ?? null);
  if (next) return;
  if (atEnd) turn.scrollIntoView({ block: "nearest" });
  else newBelow.hidden = false;
}

/** Whether who reads is at the transcript's end; other things stand below it. */
function endsInView() {
  return turns.getBoundingClientRect().bottom < innerHeight + NEAR_END;
}

function replace(old, turn) {
  if (old.dataset.stage === "final" && turn.dataset.stage !== "final") return; // older than what stands
  const held = old.contains(document.activeElement) ? document.activeElement : null;
  if (old.querySelector(".all[open]")) turn.querySelector(".all")?.setAttribute("open", "");
  old.replaceWith(turn);
  if (!held) return;
  const same = held.className ? turn.querySelector(`.${held.classList[0]}`) : turn.querySelector("article");
  same?.focus({ preventScroll: true });
}

function refresh() {
  refreshing ||= setTimeout(async () => {
    const fresh = await loadElement(`${address}/now?page=${page}`, "#now-fresh").catch(() => null);
    refreshing = 0;
    if (fresh) showTop(fresh);
  }, REFRESH_WITHIN);
}

function showTop(fresh) {
  const held = top.contains(document.activeElement) ? document.activeElement : null;
  const seq = top.querySelector(".curve a[tabindex='0']")?.dataset.seq;
  const wasLast = seq === [...top.querySelectorAll(".curve a[data-seq]")].at(-1)?.dataset.seq;
  if (top.querySelector(".as-table[open]")) fresh.querySelector(".as-table")?.setAttribute("open", "");
  top.replaceChildren(...fresh.childNodes);
  setStop(wasLast && !held ? undefined : seq);
  if (!held) return;
  const label = held.getAttribute("aria-label");
  const heldAddress = held.getAttribute("href");
  const same = [...top.querySelectorAll("a, summary")].find((one) => one.getAttribute("href") === heldAddress && one.getAttribute("aria-label") === label);
  same?.focus({ preventScroll: true });
}

const loadAnew = oneAtATime(async () => {
  const fresh = await load(location.href);
  if (!fresh) return false;
  for (const turn of fresh.querySelectorAll("li.turn")) put(Number(turn.dataset.seq), document.adoptNode(turn));
  showTop(fresh.getElementById("now"));
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
  { passive: true },
);
document.addEventListener("judged", ({ detail }) => {
  waiting.add(detail.seq);
  work();
});

watchCurve(top);
watchWindows();
watchJudging(session);
offerJudging(document);
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
    resync: loadAnew,
  },
  { pauseHidden: true },
);
