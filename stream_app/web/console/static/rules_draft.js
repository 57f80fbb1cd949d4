// Checks a draft of the rules while it is typed. A click on a problem goes to its place.
const text = document.querySelector("#text");
const shown = document.querySelector("#checked");
const PAUSE = 500;
let timer = 0;
let asked = 0;

text.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(check, PAUSE);
});

async function check() {
  asked += 1;
  const mine = asked;
  let answer;
  try {
    answer = await fetch("/api/v1/rules/check", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ text: text.value }),
    });
  } catch {
    return; // the button still checks
  }
  if (mine !== asked) return;
  if (!answer.ok) {
    say(`Not checked (${answer.status}).`);
    return;
  }
  const found = await answer.json();
  if (mine !== asked) return;
  if (found.valid) say(`No errors; ${found.rules.length} rule${found.rules.length === 1 ? "" : "s"}.`, "fine");
  else shown.replaceChildren(list(found.problems));
}

function say(words, kind = "") {
  const line = document.createElement("p");
  line.className = kind;
  line.textContent = words;
  shown.replaceChildren(line);
}

function list(problems) {
  const found = document.createElement("ul");
  found.className = "problems";
  for (const { line, column, what } of problems) {
    const item = document.createElement("li");
    const link = document.createElement("button");
    link.type = "button";
    link.className = "quiet";
    link.textContent = `Line ${line}, column ${column}: ${what}`;
    link.addEventListener("click", () => goTo(line, column));
    item.append(link);
    found.append(item);
  }
  return found;
}

function goTo(line, column) {
  const lines = text.value.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  const place = before + Math.min(column - 1, (lines[line - 1] ?? "").length);
  text.focus();
  text.setSelectionRange(place, place);
  text.scrollTop = (line - 4) * parseFloat(getComputedStyle(text).lineHeight);
}
