// One card of the wall, and what a message changes on it.

import { redraw } from "./sparkline.js";
import { sinceElement } from "./times.js";

/** As much of a pseudonym as the server shows, see formatting.py. */
const SHORT_PSEUDONYM = 8;

/** Whether one card stands before another: unanswered alerts first, then by risk. */
export function compare(one, other) {
  const calls = other.classList.contains("calls") - one.classList.contains("calls");
  return calls || riskOf(other) - riskOf(one) || (one.dataset.session < other.dataset.session ? -1 : 1);
}

function riskOf(card) {
  return card.dataset.risk === "" ? -1 : Number(card.dataset.risk);
}

/**
 * Write what is new on a card.
 * @param {HTMLElement} card
 * @param {Object} score the newest message
 * @param {Array<[number, number]>} news points of the risk line since the card was last drawn
 */
export function update(card, score, news) {
  const points = merged(JSON.parse(card.dataset.points), news);
  card.dataset.points = JSON.stringify(points);
  if (points.length) redraw(card.querySelector(".sparkline"), points);
  if (score.turns < Number(card.querySelector(".turns").textContent)) return; // the card is newer
  card.dataset.risk = score.low_empathy_risk ?? "";
  const atRisk = card.dataset.enter !== "" && score.low_empathy_risk !== null && score.low_empathy_risk >= Number(card.dataset.enter);
  const risk = card.querySelector(".risk");
  write(risk.querySelector(".value"), score.low_empathy_risk === null ? "–" : score.low_empathy_risk.toFixed(2));
  if (atRisk !== card.classList.contains("at-risk")) showStanding(card, risk, atRisk, score.last_activity_at);
  write(card.querySelector(".turns"), String(score.turns));
  showCounsellors(card.querySelector(".who"), score.counsellors);
  const last = card.querySelector(".last time");
  if (last) last.dateTime = score.last_activity_at;
  else if (score.last_activity_at) card.querySelector(".last").replaceChildren(sinceElement(score.last_activity_at), " ago");
}

function merged(points, news) {
  const bySeq = new Map(points);
  for (const [seq, risk] of news) bySeq.set(seq, risk);
  return [...bySeq].sort(([one], [other]) => one - other);
}

function showStanding(card, risk, atRisk, moment) {
  card.classList.toggle("at-risk", atRisk);
  risk.classList.toggle("above", atRisk);
  risk.classList.toggle("below", !atRisk);
  const words = card.querySelector(".at-risk-for");
  if (atRisk) words.replaceChildren("above the threshold for ", sinceElement(moment));
  else words.replaceChildren();
}

/** A card that was drawn before the counsellor's first turn does not know who it is. */
function showCounsellors(who, names) {
  const shown = [...who.children].map((one) => one.title);
  if (!names.length || shown.join() === names.join()) return;
  const written = names.map((name) => {
    const one = document.createElement("abbr");
    one.title = name;
    one.textContent = name.slice(0, SHORT_PSEUDONYM);
    return one;
  });
  who.replaceChildren(...written.flatMap((one, place) => (place ? [" ", one] : [one])));
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
