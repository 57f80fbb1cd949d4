// Hides the cards that do not contain what is typed into the search field; the server does the same
// for a loaded page. Of a wall that does not show all sessions, the server searches the others, too.

const field = document.getElementById("search");
const nothing = document.getElementById("no-match");
let wanted = field?.value.trim().toLocaleLowerCase() ?? "";
let all = () => [];
let part = { isPartial: () => false, reload: () => {} };
let typing = 0;
/** With hundreds of cards, hiding them for every key would delay the next one. */
const TYPING_PAUSE = 120;

function matches(card) {
  const who = [...card.querySelectorAll(".who [data-speaker]")].map((one) => one.textContent);
  const place = card.querySelector(".place").textContent;
  return [card.dataset.session, place, ...who].join(" ").toLocaleLowerCase().includes(wanted);
}

/** Show or hide these cards. */
export function applySearch(cards) {
  for (const card of cards) {
    const hidden = wanted !== "" && !matches(card);
    if (card.hidden !== hidden) card.hidden = hidden;
  }
  const some = [...all()];
  const empty = !some.length && !part.isPartial();
  nothing.hidden = !wanted || empty || some.some((card) => !card.hidden);
}

function searchNow() {
  wanted = field.value.trim().toLocaleLowerCase();
  applySearch(all());
  const address = new URL(location.href);
  if (wanted) address.searchParams.set("search", field.value.trim());
  else address.searchParams.delete("search");
  history.replaceState(null, "", address);
  if (part.isPartial()) part.reload();
}

/**
 * Search while typing, without loading the page.
 * @param {function(): Iterable<HTMLElement>} cards all of them
 * @param {{isPartial: function(): boolean, reload: function()}} partial whether the server has more
 *   cards, and how they are loaded for the page's address
 */
export function watchSearch(cards, partial) {
  all = cards;
  part = partial;
  field.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(searchNow, TYPING_PAUSE);
  });
}
