"""Axe's serious and critical findings on a page, in light and in dark colours."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

GRAVE = ("serious", "critical")


def grave_violations(page: Page) -> list[tuple[str, str, Any]]:
    """(colours, rule, nodes) of each finding; in dark colours only the contrast is another."""
    page.emulate_media(color_scheme="light")
    light = Axe().run(page, options={"resultTypes": ["violations"]}).response
    contrast = {rule["id"] for part in ("passes", "violations") for rule in light[part]}
    assert "color-contrast" in contrast, "axe could not compute the contrast"
    page.emulate_media(color_scheme="dark")
    dark = Axe().run(page, options={"runOnly": ["color-contrast"]}).response
    page.emulate_media(color_scheme=None)
    return [
        (colours, found["id"], [_shown(node) for node in found["nodes"][:3]])
        for colours, response in (("light", light), ("dark", dark))
        for found in response["violations"]
        if found["impact"] in GRAVE
    ]


def _shown(node: dict[str, Any]) -> tuple[str, str]:
    return node["html"][:160], node.get("failureSummary", "")[:300]
