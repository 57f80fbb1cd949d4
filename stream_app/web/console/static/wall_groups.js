// The lists of the wall: one, or one for each team.

/** All cards, in the order of the page. */
export function cardsIn(wall) {
  return [...wall.querySelectorAll(".card")];
}

/** The lists whose order is kept. */
export function lists(wall) {
  return "grouped" in wall.dataset ? [...wall.querySelectorAll("ol.cards")] : [wall];
}

/** The list that a card belongs to; a new team gets a section, in the order of names. */
export function listOf(wall, card) {
  if (!("grouped" in wall.dataset)) return wall;
  const { team } = card.dataset;
  const sections = [...wall.children];
  const found = sections.find((section) => section.dataset.team === team) ?? sectionOf(wall, sections, team);
  return found.querySelector("ol");
}

function sectionOf(wall, sections, team) {
  const section = document.createElement("section");
  section.className = "group";
  section.dataset.team = team;
  section.setAttribute("aria-label", team ? `Team ${team}` : "No team");
  const title = document.createElement("h2");
  const count = document.createElement("span");
  count.className = "count";
  title.append(`${team || "No team"} `, count);
  const list = document.createElement("ol");
  list.className = document.querySelector("ol.cards")?.className ?? "cards";
  section.append(title, list);
  const before = team ? sections.find((one) => !one.dataset.team || one.dataset.team.localeCompare(team) > 0) : null;
  wall.insertBefore(section, before ?? null);
  return section;
}

/** Update the number of cards of each team; a team without cards is removed. */
export function tallyGroups(wall) {
  if (!("grouped" in wall.dataset)) return;
  for (const section of [...wall.children]) {
    const number = section.querySelectorAll(".card").length;
    const count = section.querySelector(".count");
    if (!number) section.remove();
    else if (count.textContent !== String(number)) count.textContent = String(number);
  }
}
