// Highlights the context window of a turn whose scores are shown, on hover and focus, or permanently with its button.

const turns = document.getElementById("turns");
let pinned = null;

function show(turn) {
  for (const lit of turns.querySelectorAll(".in-window, .of-window")) lit.classList.remove("in-window", "of-window");
  if (!turn?.dataset.window || !turn.querySelector(".how[open]")) return;
  turn.classList.add("of-window");
  for (const seq of turn.dataset.window.split(" ")) document.getElementById(`turn-${seq}`)?.classList.add("in-window");
}

function turnOf(event) {
  return event.target.closest?.(".turn.counsellor") ?? null;
}

/** Highlight windows on hover, focus and click. */
export function watchWindows() {
  turns.addEventListener("pointerover", (event) => show(turnOf(event) ?? pinned));
  turns.addEventListener("pointerleave", () => show(pinned));
  turns.addEventListener("focusin", (event) => show(turnOf(event) ?? pinned));
  turns.addEventListener("focusout", () => show(pinned));
  turns.addEventListener("click", (event) => {
    const button = event.target.closest(".window");
    if (!button) return;
    const turn = turnOf(event);
    pinned = pinned === turn ? null : turn;
    for (const other of turns.querySelectorAll(".window[aria-pressed=true]")) other.setAttribute("aria-pressed", "false");
    button.setAttribute("aria-pressed", String(pinned === turn));
    show(pinned ?? turn);
  });
}
