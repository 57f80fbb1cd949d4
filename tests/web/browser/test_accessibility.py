"""The check of accessibility finds what it is meant to find."""

from playwright.sync_api import Browser

from tests.web.browser.accessibility import grave_violations

PALE_IN_THE_DARK = """
<html lang="en"><title>Pale</title><style>
  @media (prefers-color-scheme: dark) { p { color: #333; background: #222; } }
</style><main><h1>Pale</h1><p>Hard to read.</p></main></html>"""


def test_low_contrast_is_found_in_dark_colours_alone(chromium: Browser) -> None:
    page = chromium.new_page()
    page.set_content(PALE_IN_THE_DARK)
    assert [found[:2] for found in grave_violations(page)] == [("dark", "color-contrast")]
    page.set_content("<html lang=en><title>Form</title><main><h1>Form</h1><input></main></html>")
    assert [found[:2] for found in grave_violations(page)] == [("light", "label")]
    page.close()
