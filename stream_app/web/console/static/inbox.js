// Keeps the inbox right; a list that somebody is working in is not changed under their hands.

import { announce, sentenceOf } from "./announce.js";
import { oneAtATime } from "./reload.js";
import { loadElement } from "./fragment.js";
import { follow } from "./stream.js";

const changed = document.getElementById("changed");
const WITHIN = 500;
let due = 0;
let pressed = false;

function isInUse(inbox) {
  return inbox.querySelector("details[open]") || inbox.contains(document.activeElement);
}

function news() {
  due ||= setTimeout(() => {
    due = 0;
    if (isInUse(document.getElementById("inbox"))) changed.hidden = false;
    else show();
  }, WITHIN);
}

const show = oneAtATime(async () => {
  const fresh = await loadElement(location.href, "#inbox");
  if (!fresh) return false;
  const inbox = document.getElementById("inbox");
  const held = isInUse(inbox) && !pressed;
  if (!held) inbox.replaceWith(fresh);
  changed.hidden = !held;
  return true;
});

changed.addEventListener("click", async () => {
  pressed = true;
  await show();
  pressed = false;
  document.querySelector("#inbox a")?.focus();
});

follow({
  alert(alert) {
    const sentence = sentenceOf(alert);
    if (sentence) announce(sentence);
    news();
  },
  "alert-action": news,
  resync: news,
});
