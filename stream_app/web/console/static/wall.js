// Keeps the wall of live sessions right: what changed is drawn twice a second at most, numbers and
// order in one frame; the order never changes under a focus or a pointer that was just moved.

import { announce, sentenceOf } from "./announce.js";
import { oneAtATime } from "./reload.js";
import { compare, update } from "./card.js";
import { loadElement } from "./fragment.js";
import { follow } from "./stream.js";

const list = document.getElementById("cards");
const count = document.getElementById("count");
const quiet = document.getElementById("quiet");
const resort = document.getElementById("resort");
const title = document.title;
const cards = new Map([...list.children].map((card) => [card.dataset.session, card]));
const news = new Map();
const wanted = new Set();
const sentences = new Map();
const DRAW_EVERY = 500;
const REORDER_EVERY = 1_000;
/** A pointer that lies still for longer does not hold the order: nobody is about to click. */
const POINTER_RESTS_AFTER = 5_000;
const CARDS_A_FRAME = 60;
const LOADS_AT_ONCE = 4;
let due = 0;
let frame = 0;
let drawnAt = -Infinity;
let loading = 0;
let outOfOrder = false;
let pointed = -Infinity;
/** Cards that the server is drawing: what comes meanwhile is kept, and drawn upon the new card. */
const loaded = new Set();
let loadingAll = false;

function note(score) {
  const fresh = news.get(score.session_id) ?? { points: [] };
  fresh.score = score;
  fresh.points.push(...score.risk_by_turn);
  news.set(score.session_id, fresh);
  schedule();
}

function schedule() {
  if (frame || due) return;
  due = setTimeout(() => {
    due = 0;
    frame = requestAnimationFrame(draw);
  }, drawnAt + DRAW_EVERY - performance.now());
}

function draw() {
  frame = 0;
  if (loadingAll) return;
  let drawn = 0;
  for (const [session, fresh] of news) {
    if (loaded.has(session)) continue;
    if (++drawn > CARDS_A_FRAME) return void (frame = requestAnimationFrame(draw));
    news.delete(session);
    const card = cards.get(session);
    if (!card) continue;
    update(card, fresh.score, fresh.points);
    outOfOrder = true;
  }
  drawnAt = performance.now();
  tally();
  reorder();
}

function tally() {
  const calling = list.querySelectorAll(".calls").length;
  count.textContent = String(cards.size);
  quiet.hidden = cards.size > 0;
  document.title = calling ? `(${calling}) ${title}` : title;
}

function isInUse() {
  const pointing = list.matches(":hover") && performance.now() - pointed < POINTER_RESTS_AFTER;
  return pointing || list.contains(document.activeElement);
}

function reorder() {
  if (document.hidden) return;
  const order = outOfOrder ? [...cards.values()].sort(compare) : [];
  if (!outOfOrder || isInOrder(order)) {
    outOfOrder = false;
    resort.hidden = true;
  } else if (isInUse()) {
    resort.hidden = false;
  } else {
    arrange(order);
  }
}

function isInOrder(order) {
  let next = list.firstElementChild;
  for (const card of order) {
    if (card !== next) return false;
    next = next.nextElementSibling;
  }
  return true;
}

function arrange(order) {
  outOfOrder = false;
  resort.hidden = true;
  let next = list.firstElementChild;
  for (const card of order) {
    if (card === next) next = next.nextElementSibling;
    else list.insertBefore(card, next);
  }
}

function remove(session) {
  const card = cards.get(session);
  wanted.delete(session);
  if (!card) return;
  const held = card.contains(document.activeElement);
  const next = card.nextElementSibling ?? card.previousElementSibling;
  cards.delete(session);
  news.delete(session);
  card.remove();
  if (held) (next?.querySelector("a") ?? document.getElementById("main")).focus();
  tally();
}

/** A card as the server draws it: of a session that began just now, or whose alerts moved. */
function want(session) {
  wanted.add(session);
  loadNext();
}

async function loadNext() {
  if (!wanted.size || loadingAll || loading >= LOADS_AT_ONCE) return;
  const [session] = wanted;
  wanted.delete(session);
  loading += 1;
  loaded.add(session);
  const card = await loadElement(`/sessions/${encodeURIComponent(session)}/card`, "li.card").catch(() => null);
  loading -= 1;
  loaded.delete(session);
  if (card) {
    put(session, card);
    reorder();
  }
  schedule();
  tell(session);
  loadNext();
}

function put(session, card) {
  const old = cards.get(session);
  const held = old?.contains(document.activeElement);
  if (old) old.replaceWith(card);
  else list.append(card);
  if (held) card.querySelector("a")?.focus();
  cards.set(session, card);
  outOfOrder = true;
}

/** Read out what an alert did, unless the alert is muted. */
function tell(session) {
  const sentence = sentences.get(session);
  sentences.delete(session);
  if (sentence && !cards.get(session)?.querySelector(".alert-badge.muted")) announce(sentence);
}

const loadAnew = oneAtATime(async () => {
  loadingAll = true;
  const fresh = await loadElement(location.href, "#cards").catch(() => null);
  if (fresh) await replaceAll([...fresh.children]);
  loadingAll = false;
  schedule();
  loadNext();
  return fresh !== null;
});

async function replaceAll(fresh) {
  const kept = new Set(fresh.map((card) => card.dataset.session));
  for (const session of [...cards.keys()]) if (!kept.has(session)) remove(session);
  for (const [place, card] of fresh.entries()) {
    if (place % CARDS_A_FRAME === 0) await new Promise(requestAnimationFrame);
    put(card.dataset.session, card);
  }
}

resort.addEventListener("click", () => {
  arrange([...cards.values()].sort(compare));
  list.querySelector("a")?.focus();
});
list.addEventListener("pointermove", () => (pointed = performance.now()), { passive: true });
setInterval(reorder, REORDER_EVERY);
tally();

follow({
  session(score) {
    if (score.status !== "open") remove(score.session_id);
    else if (cards.has(score.session_id)) note(score);
    else want(score.session_id);
  },
  alert(alert) {
    const sentence = sentenceOf(alert);
    if (sentence) sentences.set(alert.session_id, sentence);
    want(alert.session_id);
  },
  "alert-action"(action) {
    want(action.session_id);
  },
  resync: loadAnew,
});
