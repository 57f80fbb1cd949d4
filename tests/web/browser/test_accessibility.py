"""The check of colours finds what only some elements, in dark colours, get wrong."""

from playwright.sync_api import Browser

from tests.web.browser.accessibility import grave_violations

PAGE = """<!doctype html><html lang="en"><head><title>Page</title><style>
body { background: #fff; color: #000 }
@media (prefers-color-scheme: dark) { body { background: #000; color: #fff } .dim { color: #222 } }
</style></head><body><main><h1>Heading</h1><ul>
<li>some words</li><li>some words</li><li class="dim">some words</li></ul></main></body></html>"""


def test_a_low_contrast_in_dark_colours_only_is_found(chromium: Browser) -> None:
    page = chromium.new_page()
    page.set_content(PAGE)
    [(colours, rule, [(html, _)])] = grave_violations(page)
    page.close()
    assert (colours, rule, html) == ("dark", "color-contrast", '<li class="dim">some words</li>')
