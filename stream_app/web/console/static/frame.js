// On narrow screens the navigation scrolls sideways: show the current page's entry.

const current = document.querySelector(".frame nav [aria-current]");
const list = current?.closest("ul");
if (list && list.scrollWidth > list.clientWidth) list.scrollLeft = current.offsetLeft - (list.clientWidth - current.offsetWidth) / 2;
