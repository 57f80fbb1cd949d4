// Rating a turn beside the model, disputing a score, answering a dispute: the API keeps them all.

const dialog = document.getElementById("judge");
const said = document.getElementById("judge-said");
let turn = null;

/** Show the buttons; `session` is whose turns they are about. */
export function watchJudging(session) {
  document.getElementById("turns").addEventListener("click", (event) => {
    const button = event.target.closest("button.judge");
    if (button) open(button.closest(".turn"));
  });
  onSubmit(document.getElementById("rate"), said, "Saved; it stands beside the model's score.", (form) => [
    "/api/v1/ratings",
    { session_id: session, seq: turn, head: form.get("head"), value: Number(form.get("value")) },
  ]);
  onSubmit(document.getElementById("dispute"), said, "Sent. The score stays as it is until somebody has answered.", (form) => [
    "/api/v1/disputes",
    { session_id: session, seq: turn, head: form.get("head"), proposed: form.get("proposed") === "" ? null : Number(form.get("proposed")), note: form.get("note") },
  ]);
  for (const element of document.querySelectorAll("form.answer")) {
    onSubmit(element, element.querySelector(".said-back"), "Answered.", (form) => [
      `/api/v1/disputes/${encodeURIComponent(element.dataset.dispute)}/decide`,
      { decision: form.get("decision"), answer: form.get("answer") },
    ]);
  }
}

/** Buttons do nothing without this script, so they are shown by it. */
export function offerJudging(root) {
  for (const button of root.querySelectorAll("button.judge")) button.hidden = !dialog;
}

function open(element) {
  turn = Number(element.dataset.seq);
  document.getElementById("judge-seq").textContent = String(turn);
  said.textContent = "";
  for (const form of dialog.querySelectorAll("form[id]")) form.reset();
  dialog.showModal();
}

function onSubmit(element, answerLine, thanks, request) {
  element?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = element.querySelector("button");
    button.disabled = true;
    const problem = await post(...request(new FormData(element)));
    button.disabled = false;
    answerLine.textContent = problem ? `Not saved: ${problem}` : thanks;
    if (!problem && turn !== null) document.dispatchEvent(new CustomEvent("judged", { detail: { seq: turn } }));
  });
}

/** What went wrong, in words; empty if nothing did. */
async function post(address, body) {
  try {
    const answer = await fetch(address, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    if (answer.ok) return "";
    const problem = await answer.json().catch(() => ({}));
    return problem.detail ?? `the service answered ${answer.status}`;
  } catch {
    return "the service does not answer. Try again.";
  }
}
