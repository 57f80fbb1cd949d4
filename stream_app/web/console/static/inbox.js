// Keeps the inbox up to date, but does not replace the list while the reader is using it.

import { announce, sentenceOf } from "./announce.js";
import { oneAtATime } from "./reload.js";
import { loadElement } from "./fragment.js";
import { follow } from "./stream.js";

const changed = document.getElementById("changed");
const DELAY = 500;
let due = 0;
let pressed = false;

function isInUse(inbox) {
  return inbox.querySelector("details[open]") || inbox.contains(document.activeElement);
}

function scheduleUpdate() {
  due ||= setTimeout(() => {
    due = 0;
    if (isInUse(document.getElementById("inbox"))) changed.hidden = false;
    else show();
  }, DELAY);
}

const show = oneAtATime(async () => {
  const fresh = await loadElement(location.href, "#inbox");
  if (!fresh) return false;
  const inbox = document.getElementById("inbox");
  const postponed = isInUse(inbox) && !pressed;
  if (!postponed) inbox.replaceWith(fresh);
  changed.hidden = !postponed;
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
    scheduleUpdate();
  },
  "alert-action": scheduleUpdate,
  resync: scheduleUpdate,
});
