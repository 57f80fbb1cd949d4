// Keyboard navigation of the risk curve: Tab focuses one point, arrow keys move between points.

const STEPS = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };

function points() {
  return [...document.querySelectorAll(".curve a[data-seq]")];
}

/** Make the point of this turn (default: the newest) the tab stop. */
export function setStop(seq) {
  const all = points();
  const stop = all.find((point) => point.dataset.seq === seq) ?? all.at(-1);
  for (const point of all) point.setAttribute("tabindex", point === stop ? "0" : "-1");
}

/** Handle arrow keys in the container, also for curves that replace the current one. */
export function watchCurve(container) {
  setStop();
  container.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    const point = event.target.closest?.("a[data-seq]");
    if (!step || !point) return;
    event.preventDefault();
    const all = points();
    const place = Math.min(Math.max(all.indexOf(point) + step, 0), all.length - 1);
    setStop(all[place].dataset.seq);
    all[place].focus();
  });
}
