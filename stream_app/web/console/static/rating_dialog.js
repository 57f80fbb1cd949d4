// Rating a turn beside the model, disputing a score: the API keeps both.

const dialog = document.getElementById("judge");
const said = document.getElementById("judge-said");
let turn = null;

/** Show the buttons; `session` is whose turns they are about. */
export function watchJudging(session) {
  document.getElementById("turns").addEventListener("click", (event) => {
    const button = event.target.closest("button.judge");
    if (button) open(button.closest(".turn"));
  });
  onSubmit("rate", "Saved; it stands beside the model's score.", (form) => [
    "/api/v1/ratings",
    { session_id: session, seq: turn, head: form.get("head"), value: Number(form.get("value")) },
  ]);
  onSubmit("dispute", "Sent. The score stays as it is until somebody has answered.", (form) => [
    "/api/v1/disputes",
    { session_id: session, seq: turn, head: form.get("head"), proposed: form.get("proposed") === "" ? null : Number(form.get("proposed")), note: form.get("note") },
  ]);
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
  offerDispute(element);
  dialog.showModal();
}

/** Where the model abstained there is no score to dispute. */
function offerDispute(element) {
  const form = document.getElementById("dispute");
  if (!form) return;
  const heads = form.elements.head;
  for (const option of heads.options) option.disabled = !element.querySelector(`.level[data-head="${option.value}"]:not(.lx)`);
  const scored = [...heads.options].find((option) => !option.disabled);
  form.hidden = !scored;
  if (scored) heads.value = scored.value;
}

function onSubmit(id, thanks, request) {
  const element = document.getElementById(id);
  element?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = element.querySelector("button");
    button.disabled = true;
    const problem = await post(...request(new FormData(element)));
    button.disabled = false;
    said.textContent = problem ? `Not saved: ${problem}` : thanks;
    if (!problem) document.dispatchEvent(new CustomEvent("judged", { detail: { seq: turn } }));
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
