// Keeps the inbox right; a list that somebody is working in is not changed under their hands.

import { announce, sentenceOf } from "./announce.js";
import { loadElement } from "./fragment.js";
import { follow } from "./stream.js";

const changed = document.getElementById("changed");
const WITHIN = 500;
let due = 0;

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

async function show() {
  const fresh = await loadElement(location.href, "#inbox").catch(() => null);
  if (!fresh) return;
  document.getElementById("inbox").replaceWith(fresh);
  changed.hidden = true;
}

changed.addEventListener("click", async () => {
  await show();
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
