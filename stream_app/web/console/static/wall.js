// Keeps the wall of live sessions up to date. Numbers are drawn at most twice a second, each card
// where it is. The cards are sorted at rest, that is not while one has the focus or the pointer has
// moved over the list, and seldom: only an alert comes to the front at once. The list fades meanwhile,
// so that nothing jumps. The card of a session that has ended stays in its place until then.

import { announce, sentenceOf } from "./announce.js";
import { oneAtATime } from "./reload.js";
import { compare, lacksCounsellors, update } from "./card.js";
import { load, loadElement } from "./fragment.js";
import { applySearch, watchSearch } from "./wall_search.js";
import { alarm, offerAlarm } from "./wall_alarm.js";
import { cardsIn, listOf, lists, tallyGroups } from "./wall_groups.js";
import { follow } from "./stream.js";

const list = document.getElementById("cards");
const count = document.getElementById("count");
const quiet = document.getElementById("quiet");
const resort = document.getElementById("resort");
const title = document.title;
const cards = new Map(cardsIn(list).map((card) => [card.dataset.session, card]));
const updates = new Map();
const toLoad = new Set();
const sentences = new Map();
const alarming = new Map();
/** Cards of sessions that are live no more, until the wall is sorted. */
const over = new Map();
const DRAW_EVERY = 500;
const REORDER_EVERY = 1_000;
/** How long the order stays as it is, but for alerts. */
const SORT_EVERY = 20_000;
/** A pointer that has not moved for longer does not prevent sorting: nobody is about to click. */
const POINTER_IDLE_AFTER = 30_000;
/** Longer than the list's transition, which a busy page begins late. */
const FADE = 400;
const CARDS_PER_FRAME = 60;
const CONCURRENT_LOADS = 4;
/** How often a wall that does not show all sessions asks for their number. */
const TOTAL_EVERY = 30_000;
let due = 0;
let frame = 0;
let drawnAt = -Infinity;
let loading = 0;
let outOfOrder = false;
let sortedAt = performance.now();
let sorting = false;
let pointed = -Infinity;
/** Sessions whose cards are being loaded; messages are kept until the new card is here. */
const pending = new Set();
let loadingAll = false;
/** How many cards the wall has at most; 0: it shows all sessions. */
let most = 0;
/** Whether the cards are those that match a search, of more sessions than the wall shows. */
let searched = false;

/** Read which part of the sessions a list from the server has. */
function readPart({ most: cards, searched: chosen }) {
  most = Number(cards ?? 0);
  searched = chosen !== undefined;
}

/** Whether there are sessions without a card. */
function isPartial() {
  return most > 0 || searched;
}

function queueUpdate(score) {
  const fresh = updates.get(score.session_id) ?? { points: [] };
  fresh.score = score;
  fresh.points.push(...score.risk_by_turn);
  updates.set(score.session_id, fresh);
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
  for (const [session, fresh] of updates) {
    if (pending.has(session)) continue;
    if (++drawn > CARDS_PER_FRAME) return void (frame = requestAnimationFrame(draw));
    updates.delete(session);
    const card = cards.get(session);
    if (!card) continue;
    update(card, fresh.score, fresh.points);
    if (lacksCounsellors(card, fresh.score)) requestCard(session);
    outOfOrder = true;
  }
  drawnAt = performance.now();
  tally();
  reorder();
}

function tally() {
  const unanswered = list.querySelectorAll(".unanswered:not(.over)").length;
  count.textContent = String(cards.size);
  quiet.hidden = cards.size > 0 || searched;
  tallyGroups(list);
  document.title = unanswered ? `(${unanswered}) ${title}` : title;
}

function isInUse() {
  const pointing = list.matches(":hover") && performance.now() - pointed < POINTER_IDLE_AFTER;
  return pointing || list.contains(document.activeElement);
}

function reorder() {
  if (document.hidden || sorting) return;
  const order = outOfOrder ? ordered() : [];
  if (!outOfOrder || isInOrder(order)) {
    outOfOrder = false;
    resort.hidden = true;
  } else if (isInUse()) {
    resort.hidden = false;
  } else if (performance.now() >= sortedAt + SORT_EVERY || isAlertBehind()) {
    sortSoftly();
  }
}

/** Whether an unanswered alert is behind a session without one, of which a pin is the only excuse. */
function isAlertBehind() {
  return lists(list).some((one) => one.querySelector(".card:not(.unanswered, .pinned, .over) ~ .card.unanswered:not(.pinned, .over)"));
}

/** Sort while the list cannot be seen: what moves then does not jump. */
function sortSoftly() {
  sorting = true;
  list.classList.add("sorting");
  setTimeout(() => {
    sorting = false;
    if (!isInUse()) arrange();
    requestAnimationFrame(() => requestAnimationFrame(() => list.classList.remove("sorting")));
  }, FADE);
}

/** Each list with its cards in the order that they should have; those that are over have none. */
function ordered() {
  return lists(list).map((one) => [one, [...one.children].filter((card) => !card.classList.contains("over")).sort(compare)]);
}

function isInOrder(order) {
  return order.every(([one, wanted]) => wanted.length === one.children.length && wanted.every((card, place) => card === one.children[place]));
}

function arrange() {
  for (const card of over.values()) takeOut(card);
  over.clear();
  dropLowest();
  outOfOrder = false;
  sortedAt = performance.now();
  resort.hidden = true;
  for (const [one, wanted] of ordered()) {
    let next = one.firstElementChild;
    for (const card of wanted) {
      if (card === next) next = next.nextElementSibling;
      else one.insertBefore(card, next);
    }
  }
}

/** Let a session that is live no more go; its card stays until the wall is sorted. */
function leave(session) {
  const card = forget(session);
  if (!card) return;
  card.classList.add("over");
  card.querySelector(".place").append(", no longer live");
  over.set(session, card);
  outOfOrder = true;
  tally();
}

function remove(session) {
  const card = forget(session);
  if (card) takeOut(card);
}

/** No message changes this session's card any more. */
function forget(session) {
  const card = cards.get(session);
  toLoad.delete(session);
  cards.delete(session);
  updates.delete(session);
  return card;
}

function takeOut(card) {
  const hadFocus = card.contains(document.activeElement);
  const next = card.nextElementSibling ?? card.previousElementSibling;
  card.remove();
  if (hadFocus) (next?.querySelector("a") ?? document.getElementById("main")).focus();
  tally();
}

/**
 * Whether a session without a card should get one. A wall that does not show all sessions shows those
 * with the highest risk: the others send updates, too, and must not be loaded at each of them.
 */
function belongsHere({ low_empathy_risk: risk }) {
  if (searched) return false;
  if (!most || cards.size < most) return true;
  return risk !== null && risk > lowestRisk();
}

function lowestRisk() {
  let lowest = Infinity;
  for (const card of cards.values()) lowest = Math.min(lowest, Number(card.dataset.risk || -1));
  return lowest;
}

/** The cards that a wall with too many may lose. */
function droppable() {
  return [...cards.values()].filter((card) => !card.matches(".pinned, .unanswered, :focus-within"));
}

/** Shorten a wall that is about to be sorted. */
function dropLowest() {
  if (!most || cards.size <= most) return;
  const lowestFirst = droppable().sort((one, other) => compare(other, one));
  for (const card of lowestFirst.slice(0, cards.size - most)) remove(card.dataset.session);
}

/**
 * On a wall that has become too long, a new card takes the place of the one with the lowest risk that
 * is below what can be seen. Those above are dropped with the next sorting.
 */
function replaceLowest(fresh) {
  if (!most || cards.size <= most) return;
  const shown = droppable().filter((card) => card.getBoundingClientRect().top >= innerHeight);
  if (!shown.length) return;
  const low = shown.reduce((low, card) => (Number(card.dataset.risk || -1) < Number(low.dataset.risk || -1) ? card : low));
  if (low !== fresh && low.parentElement === fresh.parentElement) low.before(fresh);
  remove(low.dataset.session);
}

/** Load a card from the server: for a new session, or one whose alerts have changed. */
function requestCard(session) {
  toLoad.add(session);
  loadNext();
}

async function loadNext() {
  if (!toLoad.size || loadingAll || loading >= CONCURRENT_LOADS) return;
  const [session] = toLoad;
  toLoad.delete(session);
  loading += 1;
  pending.add(session);
  const card = await loadElement(`/sessions/${encodeURIComponent(session)}/card`, "li.card").catch(() => null);
  loading -= 1;
  pending.delete(session);
  if (card) {
    card.classList.add("fresh");
    put(session, card);
    replaceLowest(card);
    reorder();
  }
  schedule();
  announceAlert(session);
  loadNext();
}

function put(session, card) {
  const old = cards.get(session) ?? over.get(session);
  over.delete(session);
  const hadFocus = old?.contains(document.activeElement);
  const own = listOf(list, card);
  if (old?.parentElement === own) old.replaceWith(card);
  else {
    old?.remove();
    own.append(card);
  }
  cards.set(session, card);
  applySearch([card]);
  if (hadFocus) card.querySelector("a")?.focus();
  outOfOrder = true;
}

/** Announce an alert's change, unless all of the session's alerts are muted. */
function announceAlert(session) {
  const sentence = sentences.get(session);
  sentences.delete(session);
  const critical = alarming.get(session);
  alarming.delete(session);
  const badges = [...(cards.get(session)?.querySelectorAll(".alert-badge") ?? [])];
  if (badges.length && badges.every((badge) => badge.classList.contains("muted"))) return;
  if (sentence) announce(sentence);
  if (critical) alarm(critical);
}

const reload = oneAtATime(async () => {
  loadingAll = true;
  const page = await load(location.href).catch(() => null);
  const fresh = page?.getElementById("cards");
  if (fresh) {
    readPart(fresh.dataset);
    await replaceAll(cardsIn(fresh));
    for (const id of ["total", "rest"]) replacePart(page, id);
    applySearch([]);
  }
  loadingAll = false;
  schedule();
  loadNext();
  return fresh !== undefined;
});

/** Replace an element, which may be missing in either document, by its newer version. */
function replacePart(page, id) {
  const [old, fresh] = [document.getElementById(id), page.getElementById(id)];
  if (!old || !fresh || old.contains(document.activeElement)) return;
  old.replaceWith(document.adoptNode(fresh));
}

/** Keep the number of sessions, or what matches a search, up to date. */
async function refreshPart() {
  if (document.hidden || !isPartial() || !list.dataset.total) return;
  if (searched) return void reload();
  const fresh = await loadElement(list.dataset.total, "#total").catch(() => null);
  if (fresh) document.getElementById("total")?.replaceWith(fresh);
}

async function replaceAll(fresh) {
  const kept = new Set(fresh.map((card) => card.dataset.session));
  for (const session of [...cards.keys()]) if (!kept.has(session)) remove(session);
  for (const [place, card] of fresh.entries()) {
    if (place % CARDS_PER_FRAME === 0) await new Promise(requestAnimationFrame);
    put(card.dataset.session, card);
  }
}

resort.addEventListener("click", () => {
  arrange();
  list.querySelector("a")?.focus();
});
list.addEventListener("submit", async (event) => {
  const form = event.target.closest("form.pin");
  if (!form) return;
  event.preventDefault();
  const session = form.closest(".card").dataset.session;
  await fetch(form.action, { method: "POST", body: new FormData(form, event.submitter) }).catch(() => null);
  requestCard(session);
});
readPart(list.dataset);
watchSearch(() => cards.values(), {
  isPartial,
  reload,
});
setInterval(refreshPart, TOTAL_EVERY);
offerAlarm();
list.addEventListener("pointermove", () => (pointed = performance.now()), { passive: true });
setInterval(reorder, REORDER_EVERY);
tally();

follow({
  session(score) {
    if (score.status !== "open") leave(score.session_id);
    else if (cards.has(score.session_id)) queueUpdate(score);
    else if (belongsHere(score)) requestCard(score.session_id);
  },
  alert(alert) {
    const sentence = sentenceOf(alert);
    if (sentence) sentences.set(alert.session_id, sentence);
    if (alert.state === "firing" && alert.severity === "critical") alarming.set(alert.session_id, alert);
    requestCard(alert.session_id);
  },
  "alert-action"(action) {
    requestCard(action.session_id);
  },
  intervention({ session_id: session }) {
    if (cards.has(session)) requestCard(session);
  },
  resync: reload,
});
