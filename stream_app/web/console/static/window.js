// Shows which turns a score has seen: under the pointer, at the focus, or held by its button.

const turns = document.getElementById("turns");
let held = null;

function show(turn) {
  for (const lit of turns.querySelectorAll(".in-window, .of-window")) lit.classList.remove("in-window", "of-window");
  if (!turn?.dataset.window) return;
  turn.classList.add("of-window");
  for (const seq of turn.dataset.window.split(" ")) document.getElementById(`turn-${seq}`)?.classList.add("in-window");
}

function turnOf(event) {
  return event.target.closest?.(".turn.counsellor") ?? null;
}

/** Light up windows as the reader moves about. */
export function watchWindows() {
  turns.addEventListener("pointerover", (event) => show(turnOf(event) ?? held));
  turns.addEventListener("pointerleave", () => show(held));
  turns.addEventListener("focusin", (event) => show(turnOf(event) ?? held));
  turns.addEventListener("focusout", () => show(held));
  turns.addEventListener("click", (event) => {
    const button = event.target.closest(".window");
    if (!button) return;
    const turn = turnOf(event);
    held = held === turn ? null : turn;
    for (const other of turns.querySelectorAll(".window[aria-pressed=true]")) other.setAttribute("aria-pressed", "false");
    button.setAttribute("aria-pressed", String(held === turn));
    show(held ?? turn);
  });
}
