// The card below a turn that rates it and disputes a score. It opens in the transcript, so that the
// turn's neighbours stay in view. A rating is saved as soon as all mechanisms have a level.

const SAVED = "Saved. The model's score does not change.";

/** Watch the transcript's cards; `session` is the id of the session. */
export function watchRatingCards(session) {
  const turns = document.getElementById("turns");
  turns.addEventListener("click", (event) => {
    const button = event.target.closest("button.rate");
    if (button) toggle(button.closest(".turn"));
  });
  turns.addEventListener("change", (event) => {
    const form = event.target.closest(".rate-form");
    if (form && event.target.type === "radio" && questionsOf(form).every(chosen)) save(form);
  });
  turns.addEventListener("keydown", onKey);
  turns.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.target.matches(".rate-form")) saveAndClose(event.target);
    else dispute(event.target, session);
  });
}

/** Show what works only with scripts. */
export function prepareRatingCards(root) {
  for (const keys of root.querySelectorAll(".rating-card .keys")) keys.hidden = false;
}

/** Move an open card, with what was typed, from a turn to the one that replaces it. */
export function keepOpenCard(old, turn) {
  const card = old.querySelector(".rating-card.open");
  const fresh = turn.querySelector(".rating-card");
  if (!card || !fresh) return;
  fresh.replaceWith(card);
  turn.querySelector("button.rate").setAttribute("aria-expanded", "true");
}

const questionsOf = (form) => [...form.querySelectorAll("fieldset")];
const chosen = (question) => question.querySelector("input:checked");
const focusOn = (question) => (chosen(question) ?? question.querySelector("input")).focus();

function toggle(turn) {
  const card = turn.querySelector(".rating-card");
  if (card.classList.contains("open")) return close(turn);
  card.classList.add("open");
  turn.querySelector("button.rate").setAttribute("aria-expanded", "true");
  const questions = questionsOf(card.querySelector(".rate-form"));
  focusOn(questions.find((question) => !chosen(question)) ?? questions[0]);
  turn.scrollIntoView({ block: "center" }); // with the turns before and after it
}

function close(turn) {
  const button = turn.querySelector("button.rate");
  turn.querySelector(".rating-card").classList.remove("open");
  button.setAttribute("aria-expanded", "false");
  button.focus();
}

/** 0, 1 and 2 answer the focused question, or the first open one; Escape closes the card. */
function onKey(event) {
  const card = event.target.closest(".rating-card");
  if (!card || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") return close(card.closest(".turn"));
  if (event.key.length !== 1 || !"012".includes(event.key) || event.target.matches("textarea, select")) return;
  const form = card.querySelector(".rate-form");
  const questions = questionsOf(form);
  const here = questions.find((question) => question.contains(event.target));
  const question = here ?? questions.find((each) => !chosen(each)) ?? questions[0];
  const answer = question.querySelector(`input[value="${event.key}"]`);
  event.preventDefault();
  const next = questions[questions.indexOf(question) + 1];
  if (next) focusOn(next);
  else form.querySelector("button").focus();
  if (answer.checked) return;
  answer.checked = true;
  answer.dispatchEvent(new Event("change", { bubbles: true }));
}

async function saveAndClose(form) {
  if (await save(form)) close(form.closest(".turn"));
}

/** Save the form; true on success. */
async function save(form) {
  const answer = await send(form, form.action, { body: new URLSearchParams(new FormData(form)) });
  if (answer === "") finish(form, SAVED);
  return answer === "";
}

async function dispute(form, session) {
  const given = new FormData(form);
  const proposed = given.get("proposed");
  const body = {
    session_id: session,
    seq: Number(given.get("seq")),
    head: given.get("head"),
    proposed: proposed === "" ? null : Number(proposed),
    note: given.get("note"),
  };
  const headers = { "Content-Type": "application/json" };
  const answer = await send(form, "/api/v1/disputes", { headers, body: JSON.stringify(body) });
  if (answer === "") finish(form, "Sent. The score does not change; a supervisor will answer.");
}

function finish(form, words) {
  form.querySelector(".rating-status").textContent = words;
  const seq = Number(form.elements.seq.value);
  document.dispatchEvent(new CustomEvent("reviewed", { detail: { seq } }));
}

/** Post; shows and returns what went wrong, empty on success. */
async function send(form, address, request) {
  const status = form.querySelector(".rating-status");
  status.textContent = "Saving …";
  const problem = await post(address, request);
  if (problem) status.textContent = `Not saved: ${problem}`;
  return problem;
}

async function post(address, { headers = {}, body }) {
  try {
    const answer = await fetch(address, { method: "POST", headers: { Accept: "application/json", ...headers }, body });
    if (answer.redirected) return "you are signed out. Reload the page to sign in.";
    if (answer.ok) return "";
    const problem = await answer.json().catch(() => ({}));
    return problem.detail ?? `the service returned status ${answer.status}`;
  } catch {
    return "the service cannot be reached. Try again.";
  }
}
