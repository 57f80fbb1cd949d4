// Draws a card's risk line anew, as `charts.sparkline` drew it at first.

const MIN_TURNS = 8;

/**
 * @param {SVGElement} svg of the card
 * @param {Array<[number, number]>} points turn and risk
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
  const said = (risk) => risk.toFixed(2);
  return `Risk after ${turns}: began at ${said(risks[0])}, highest ${said(Math.max(...risks))}, now ${said(risks.at(-1))}`;
}
