// Applies the filters of a form as soon as one changes; without scripts, its button does. The focus
// returns to the control after the page has loaded.

const FOCUS = "rapport-filter";
/** People type a date part by part, and tick several boxes. */
const DELAY = { date: 900, checkbox: 600 };

for (const form of document.querySelectorAll("form[data-instant]")) {
  let due = 0;
  const apply = () => {
    const name = document.activeElement?.form === form ? document.activeElement.name : "";
    sessionStorage.setItem(FOCUS, JSON.stringify([form.getAttribute("action"), name]));
    form.requestSubmit();
  };
  for (const button of form.querySelectorAll("button:not([name])")) button.hidden = true;
  form.addEventListener("change", (event) => {
    clearTimeout(due);
    due = setTimeout(apply, DELAY[event.target.type] ?? 0);
  });
}

const [action, name] = JSON.parse(sessionStorage.getItem(FOCUS) ?? "[]");
sessionStorage.removeItem(FOCUS);
if (name) document.querySelector(`form[data-instant][action="${action}"] [name="${name}"]`)?.focus({ preventScroll: true });
