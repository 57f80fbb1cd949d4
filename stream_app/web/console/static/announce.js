// Says alerts, and nothing else, to those who listen to the page.

const region = document.getElementById("announcer");

/** Read a sentence out when the reader is next free. */
export function announce(sentence) {
  if (!region) return;
  const line = document.createElement("p");
  line.textContent = sentence;
  region.replaceChildren(line);
}

/** What an alert's message is in a sentence; empty where nobody needs to hear it. */
export function sentenceOf(alert) {
  if (alert.state === "firing") return `Alert: ${alert.rule} fires in session ${alert.session_id}. ${alert.reason}`;
  if (alert.state === "resolved") return `Alert resolved: ${alert.rule} in session ${alert.session_id}.`;
  return "";
}
