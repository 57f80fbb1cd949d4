// Announces alerts to screen readers.

const region = document.getElementById("announcer");

/** Announce a sentence politely. */
export function announce(sentence) {
  if (!region) return;
  const line = document.createElement("p");
  line.textContent = sentence;
  region.replaceChildren(line);
}

/** The announcement for an alert message; empty if none is needed. */
export function sentenceOf(alert) {
  if (alert.state === "firing") return `Alert: ${alert.rule} is firing in session ${alert.session_id}. ${alert.reason}`;
  if (alert.state === "resolved") return `Alert resolved: ${alert.rule} in session ${alert.session_id}.`;
  return "";
}
