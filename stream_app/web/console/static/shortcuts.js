// Keyboard shortcuts: "?" shows them, "/" goes to the search field, "g" and a letter open a page.
// They can be switched off, because single keys get in the way of voice control.

const dialog = document.getElementById("shortcuts");
const on = document.getElementById("shortcuts-on");
const OFF = "rapport-shortcuts-off";
const SEQUENCE_MS = 1_500;
let goUntil = 0;

function isTyping(target) {
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable]") !== null;
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (event.key === "?") return void show(event);
  if (!on.checked || document.querySelector("dialog[open]")) return;
  if (event.timeStamp < goUntil) return void go(event);
  if (event.key === "g") goUntil = event.timeStamp + SEQUENCE_MS;
  else if (event.key === "/") search(event);
}

function show(event) {
  if (document.querySelector("dialog[open]")) return;
  event.preventDefault();
  dialog.showModal();
}

function go(event) {
  goUntil = 0;
  const link = dialog.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
  if (!link) return;
  event.preventDefault();
  location.assign(link.href);
}

function search(event) {
  const field = document.querySelector("main input[type=search]");
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
}

if (dialog) {
  on.checked = localStorage.getItem(OFF) === null;
  on.addEventListener("change", () => {
    if (on.checked) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "1");
  });
  document.addEventListener("keydown", pressed);
  document.getElementById("shortcuts-close").addEventListener("click", () => dialog.close());
}
