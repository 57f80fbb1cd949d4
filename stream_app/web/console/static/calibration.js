// Keys 0, 1, 2 answer the focused question (otherwise the first unanswered one) and focus the next.

const form = document.getElementById("rating");
const questions = form ? [...form.querySelectorAll("fieldset")] : [];
const chosen = (question) => question.querySelector("input:checked");
const focusOn = (question) =>
  (chosen(question) ?? question.querySelector("input")).focus();

if (form) {
  document.getElementById("keys").hidden = false;
  focusOn(questions.find((question) => !chosen(question)) ?? questions[0]);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !"012".includes(event.key)) return;
    const here = questions.find((question) => question.contains(document.activeElement));
    const question = here ?? questions.find((each) => !chosen(each)) ?? questions[0];
    question.querySelector(`input[value="${event.key}"]`).checked = true;
    event.preventDefault();
    const next = questions[questions.indexOf(question) + 1];
    if (next) focusOn(next);
    else form.querySelector("button").focus();
  });
}
