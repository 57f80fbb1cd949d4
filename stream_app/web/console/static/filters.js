// Applies the filters of a form as soon as one changes; without scripts, its button does. The focus
// returns to the control after the page has loaded. Fields with `data-live` need no load.

const FOCUS = "rapport-filter";
/** People type a date part by part, and tick several boxes. */
const DELAY = { date: 900, checkbox: 600 };

const forms = [...document.querySelectorAll("form[data-instant]")];

for (const form of forms) {
  let due = 0;
  const apply = () => {
    const name = document.activeElement?.form === form ? document.activeElement.name : "";
    sessionStorage.setItem(FOCUS, JSON.stringify([location.pathname, forms.indexOf(form), name]));
    form.requestSubmit();
  };
  for (const button of form.querySelectorAll("button:not([name])")) button.hidden = true;
  form.addEventListener("change", (event) => {
    if (event.target.matches("[data-live]")) return;
    clearTimeout(due);
    due = setTimeout(apply, DELAY[event.target.type] ?? 0);
  });
}

const narrow = matchMedia("(max-width: 44rem)");
/** Fold the filters where the window is narrow, unfold them where their button is hidden. */
function fold() {
  for (const one of document.querySelectorAll(".folding")) {
    one.open = !narrow.matches;
    delete one.dataset.unread;
  }
}
fold();
narrow.addEventListener("change", fold);

const [path, place, name] = JSON.parse(sessionStorage.getItem(FOCUS) ?? "[]");
sessionStorage.removeItem(FOCUS);
if (name && path === location.pathname) {
  forms[place]?.closest(".folding")?.setAttribute("open", "");
  forms[place]?.elements.namedItem(name)?.focus?.({ preventScroll: true });
}
