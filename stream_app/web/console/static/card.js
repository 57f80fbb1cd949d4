// Updates one card of the wall from a message.

import { redraw } from "./sparkline.js";
import { sinceElement } from "./times.js";

/** Sort pinned cards first, then unanswered alerts, then by descending risk. */
export function compare(one, other) {
  const pinned = other.classList.contains("pinned") - one.classList.contains("pinned");
  if (pinned) return pinned;
  const unanswered = other.classList.contains("unanswered") - one.classList.contains("unanswered");
  return unanswered || riskOf(other) - riskOf(one) || (one.dataset.session < other.dataset.session ? -1 : 1);
}

function riskOf(card) {
  return card.dataset.risk === "" ? -1 : Number(card.dataset.risk);
}

/**
 * Update a card.
 * @param {HTMLElement} card
 * @param {Object} score the newest message
 * @param {Array<[number, number]>} news new points of the risk line
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

/** Whether counsellors have joined since the card was rendered; analysts get no counsellors. */
export function lacksCounsellors(card, score) {
  const shown = [...card.querySelectorAll("[data-speaker]")].map((one) => one.dataset.speaker);
  return score.counsellors.length > 0 && shown.join() !== score.counsellors.join();
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
