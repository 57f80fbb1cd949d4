// Reports that this page is open, and shows who else looks at the session.

import { loadElement } from "./fragment.js";

/** As in store/presence.py. */
const REPORT_EVERY = 15_000;
const { session } = document.getElementById("now").dataset;
const address = `/sessions/${encodeURIComponent(session)}/presence`;

async function report() {
  if (document.hidden) return;
  const fresh = await loadElement(address, "#presence", { method: "POST" }).catch(() => null);
  const shown = document.getElementById("presence");
  if (fresh && shown.textContent !== fresh.textContent) shown.replaceWith(fresh);
}

setInterval(report, REPORT_EVERY);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) navigator.sendBeacon(`${address}/leave`);
  else report();
});
