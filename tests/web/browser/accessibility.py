"""Axe's grave findings on a page, in light and in dark colours."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

GRAVE = ("serious", "critical")
AS_GRAVE = ("landmark-unique",)
"""A moderate finding: landmarks of one name cannot be told apart in a screen reader's list."""
DARK = """async () => {
  const varied = new Set(["id", "href", "for", "name", "value", "title", "datetime", "aria-label"]);
  const own = (node) => [node.tagName, ...[...node.attributes]
    .map(({ name, value }) => (varied.has(name) ? name : name + "=" + value))].join(" ");
  const kind = (node) => own(node) + "(" + [...node.children].map(kind).join() + ")";
  const seen = new Set(), repeated = [];
  const walk = (node, path) => {
    for (const child of node.children) {
      const key = path + ">" + kind(child);
      if (seen.has(key)) repeated.push(child);
      else { seen.add(key); walk(child, path + ">" + own(child)); }
    }
  };
  walk(document.body, "");
  const context = { include: [document], exclude: repeated };
  return await axe.run(context, { runOnly: ["color-contrast"] });
}"""
"""Contrast of one of each kind of element, with axe already loaded: rows of a table have the same
colours, and the contrast of every element takes axe a second.
"""


def grave_violations(page: Page) -> list[tuple[str, str, Any]]:
    """(colours, rule, nodes) of each finding; in dark colours only the contrast differs."""
    page.emulate_media(color_scheme="light")
    light = Axe().run(page, options={"resultTypes": ["violations"]}).response
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(DARK)
    page.emulate_media(color_scheme=None)
    for response in (light, dark):
        contrast = {rule["id"] for part in ("passes", "violations") for rule in response[part]}
        assert "color-contrast" in contrast, "axe could not compute the contrast"
    return [
        (colours, found["id"], [_shown(node) for node in found["nodes"][:3]])
        for colours, response in (("light", light), ("dark", dark))
        for found in response["violations"]
        if found["impact"] in GRAVE or found["id"] in AS_GRAVE
    ]


def _shown(node: dict[str, Any]) -> tuple[str, str]:
    return node["html"][:160], node.get("failureSummary", "")[:300]
