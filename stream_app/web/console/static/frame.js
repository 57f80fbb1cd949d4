// On narrow screens the navigation scrolls sideways: show the current page's entry.

const current = document.querySelector(".frame nav [aria-current]");
const list = current?.closest("ul");
if (list && list.scrollWidth > list.clientWidth) {
  const toEntry = current.getBoundingClientRect().left - list.getBoundingClientRect().left;
  list.scrollLeft += toEntry - (list.clientWidth - current.offsetWidth) / 2;
}
