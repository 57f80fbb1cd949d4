// Redraws a card's sparkline in the same way as `charts.sparkline` on the server.

const MIN_TURNS = 8;

/**
 * @param {SVGElement} the card's sparkline
 * @param {Array<[number, number]>} points (seq, risk) pairs
 */
export function redraw(svg, points) {
  const last = points.reduce((most, [seq]) => Math.max(most, seq), MIN_TURNS);
  const x = (seq) => (100 * seq) / last;
  const y = (risk) => 100 - 100 * risk;
  const line = points.map(([seq, risk]) => `${x(seq).toFixed(1)},${y(risk).toFixed(1)}`).join(" ");
  svg.querySelector("polyline").setAttribute("points", line);
  const [seq, risk] = points.at(-1);
  const dot = svg.querySelector("circle");
  dot.setAttribute("cx", `${x(seq).toFixed(1)}%`);
  dot.setAttribute("cy", `${y(risk).toFixed(1)}%`);
  dot.setAttribute("r", "3");
  svg.setAttribute("aria-label", inWords(points));
}

function inWords(points) {
  const risks = points.map(([, risk]) => risk);
  const turns = risks.length === 1 ? "1 counsellor turn" : `${risks.length} counsellor turns`;
  const format = (risk) => risk.toFixed(2);
  return `Risk after ${turns}: began at ${format(risks[0])}, highest ${format(Math.max(...risks))}, now ${format(risks.at(-1))}`;
}
