// Dragging over a curve by date chooses its dates: the fields of the page's form, as if typed. With
// fields for a zoom, those; otherwise "from" and "to". Without scripts, people fill the fields.

const DAY = 86_400_000;
/** Per cent of the width below which a drag is a click. */
const LEAST = 3;

const form = document.querySelector("form.choices");
const fields = ["first", "last"].every((name) => form?.elements.namedItem(name))
  ? ["first", "last"]
  : ["from", "to"];

for (const chart of form ? document.querySelectorAll("svg.bands[data-first]") : []) {
  const left = Number(chart.dataset.left);
  const width = Number(chart.dataset.right) - left;
  const begin = Date.parse(chart.dataset.first);
  const days = (Date.parse(chart.dataset.last) - begin) / DAY;
  if (days < 1) continue;
  const frame = document.createElement("div");
  frame.className = "zoomed";
  chart.replaceWith(frame);
  frame.append(chart);
  const band = document.createElement("div");
  band.className = "zooming";
  let from = null;

  const place = (event) => {
    const box = chart.getBoundingClientRect();
    const share = (100 * (event.clientX - box.left)) / box.width;
    return Math.min(Math.max(share, left), left + width);
  };
  const day = (share) => {
    const moment = new Date(begin + Math.round((days * (share - left)) / width) * DAY);
    return moment.toISOString().slice(0, 10);
  };
  chart.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    chart.setPointerCapture(event.pointerId);
    from = place(event);
    frame.append(band);
  });
  chart.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const to = place(event);
    band.style.insetInlineStart = `${Math.min(from, to)}%`;
    band.style.width = `${Math.abs(to - from)}%`;
  });
  chart.addEventListener("pointercancel", () => {
    from = null;
    band.remove();
  });
  chart.addEventListener("pointerup", (event) => {
    if (from === null) return;
    const ends = [from, place(event)].sort((one, other) => one - other);
    from = null;
    band.remove();
    if (ends[1] - ends[0] < LEAST) return;
    fields.forEach((name, at) => {
      form.elements.namedItem(name).value = day(ends[at]);
    });
    form.requestSubmit();
  });
}
