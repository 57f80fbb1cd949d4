// Rating a turn beside the model, and disputing a score; both are kept by the API.

const dialog = document.getElementById("judge");
const said = document.getElementById("judge-said");
let turn = null;

/** Show the buttons; `session` is whose turns they are about. */
export function watchJudging(session) {
  if (!dialog) return;
  document.getElementById("turns").addEventListener("click", (event) => {
    const button = event.target.closest("button.judge");
    if (button) open(button.closest(".turn"));
  });
  submit("rate", (form) => post("/api/v1/ratings", { session_id: session, seq: turn, head: form.get("head"), value: Number(form.get("value")), sample_id: null }, "Saved; it stands beside the model's score."));
  submit("dispute", (form) => post("/api/v1/disputes", { session_id: session, seq: turn, head: form.get("head"), proposed: form.get("proposed") === "" ? null : Number(form.get("proposed")), note: form.get("note") }, "Sent. The score stays as it is until somebody has decided."));
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

function submit(id, send) {
  document.getElementById(id)?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const form = event.target;
    const button = form.querySelector("button");
    button.disabled = true;
    const done = await send(new FormData(form));
    button.disabled = false;
    if (done) form.dispatchEvent(new CustomEvent("judged", { bubbles: true, detail: { seq: turn } }));
  });
}

async function post(address, body, thanks) {
  said.textContent = "";
  try {
    const answer = await fetch(address, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    if (answer.ok) {
      said.textContent = thanks;
      return true;
    }
    const problem = await answer.json().catch(() => ({}));
    said.textContent = `Not saved: ${problem.detail ?? `the service answered ${answer.status}`}`;
  } catch {
    said.textContent = "Not saved: the service does not answer. Try again.";
  }
  return false;
}
