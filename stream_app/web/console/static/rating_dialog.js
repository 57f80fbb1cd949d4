// The dialog for rating a turn and disputing a score, which sends both to the API.

const dialog = document.getElementById("rating-dialog");
const status = document.getElementById("rating-status");
let turn = null;

/** Open the dialog when a rating button is clicked; `session` is the id of the session. */
export function watchRatingButtons(session) {
  document.getElementById("turns").addEventListener("click", (event) => {
    const button = event.target.closest("button.rate");
    if (button) open(button.closest(".turn"));
  });
  onSubmit("rate", "Saved. The model's score does not change.", (form) => [
    "/api/v1/ratings",
    { session_id: session, seq: turn, head: form.get("head"), value: Number(form.get("value")) },
  ]);
  onSubmit("dispute", "Sent. The score does not change; a supervisor will answer.", (form) => [
    "/api/v1/disputes",
    { session_id: session, seq: turn, head: form.get("head"), proposed: form.get("proposed") === "" ? null : Number(form.get("proposed")), note: form.get("note") },
  ]);
}

/** Show the rating buttons, which are hidden without JavaScript. */
export function showRatingButtons(root) {
  for (const button of root.querySelectorAll("button.rate")) button.hidden = !dialog;
}

function open(element) {
  turn = Number(element.dataset.seq);
  document.getElementById("rating-seq").textContent = String(turn);
  status.textContent = "";
  for (const form of dialog.querySelectorAll("form[id]")) form.reset();
  prepareDispute(element);
  dialog.showModal();
}

/** Offer only heads with a score; heads that abstained have none to dispute. */
function prepareDispute(element) {
  const form = document.getElementById("dispute");
  if (!form) return;
  const heads = form.elements.head;
  for (const option of heads.options) option.disabled = !element.querySelector(`.level[data-head="${option.value}"]:not(.lx)`);
  const scored = [...heads.options].find((option) => !option.disabled);
  form.hidden = !scored;
  if (scored) heads.value = scored.value;
}

function onSubmit(id, confirmation, request) {
  const element = document.getElementById(id);
  element?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = element.querySelector("button");
    button.disabled = true;
    const problem = await post(...request(new FormData(element)));
    button.disabled = false;
    status.textContent = problem ? `Not saved: ${problem}` : confirmation;
    if (!problem) document.dispatchEvent(new CustomEvent("reviewed", { detail: { seq: turn } }));
  });
}

/** Post a body; returns an error message, empty on success. */
async function post(address, body) {
  try {
    const answer = await fetch(address, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    if (answer.ok) return "";
    const problem = await answer.json().catch(() => ({}));
    return problem.detail ?? `the service returned status ${answer.status}`;
  } catch {
    return "the service cannot be reached. Try again.";
  }
}
