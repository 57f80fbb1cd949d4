"""The pages of the analyses: an analyst's way to an answer, zooming, labels, windows and axe."""

import csv
import io
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from stream_app.analytics.rollups import rollups
from stream_app.analytics.views import schema
from stream_app.demo import simulated_store
from stream_app.demo.simulator import simulate
from stream_app.web.console.analytics.asked_questions import ASKED
from tests.web.browser.accessibility import grave_violations
from tests.web.browser.conftest import PHONE, WIDE, NewWeb, OpenTab, Tab
from tests.web.browser.scored_web import PASSWORD, ScoredWeb
from tests.web.people.longitudinal import WORLD

BEGIN = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=185)
TRAINING = BEGIN + timedelta(days=91)
RELEASE = TRAINING + timedelta(days=9)
"""So near to the training that their letters share a place."""
REPORT = "/analytics/report"
PATHS = (
    "/analytics",
    *(f"/analytics/{name}?stay=30" for name in ASKED),
    "/analytics/over-time?stay=30&calendar=true",
    "/analytics/service-levels?measure=precision",
    "/analytics/service-levels?measure=looked_at",
    REPORT,
)
WINDOWS = {"wide": {"viewport": WIDE}, "phone": {"viewport": PHONE, "has_touch": True}}
OVERPRINTED = """() => {
  const found = [];
  for (const chart of document.querySelectorAll("svg.bands, svg.interval")) {
    const texts = [...chart.querySelectorAll("text")]
      .map((text) => [text.textContent, text.getBoundingClientRect()]);
    texts.forEach(([one, a], place) => texts.slice(0, place).forEach(([other, b]) => {
      const apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top + 1
        || b.bottom <= a.top + 1;
      if (!apart) found.push([one, other]);
    }));
  }
  return found;
}"""
LONG_CAPTIONS = """() => [...document.querySelectorAll("figure .caption")]
  .filter((one) => one.closest("details:not([open])") === null)
  .filter((one) => one.getBoundingClientRect().height > 4 * 20)
  .map((one) => one.textContent)"""
PATIENCE_MS = 180_000
"""A web process imports what the first analysis needs, and other tests may use its cores."""
CLICKS = """addEventListener("click", (event) => {
  const clicks = Number(localStorage.getItem("clicks")) + Number(event.isTrusted);
  localStorage.setItem("clicks", clicks);
}, true);"""


@pytest.fixture(scope="module")
def web(new_web: NewWeb, tmp_path_factory: pytest.TempPathFactory) -> ScoredWeb:
    """Half a year of two teams, with a training in its middle that raised the levels."""
    days = tmp_path_factory.mktemp("days") / "days.csv"
    days.write_text(
        f"date,kind,name\n{TRAINING:%Y-%m-%d},training,Listening\n"
        f"{RELEASE:%Y-%m-%d},release,Chat 4.2\n",
        "utf-8",
    )
    world = replace(
        WORLD, begins=BEGIN, training=3, training_jump=0.3, new_model=3.6, sessions_a_month=14
    )
    platform = simulate(world)
    declared = days.with_name("attributes.csv")
    rows = [f"{name},{told}" for name, told in platform.attributes.items()]
    declared.write_text("\n".join(["speaker_id,attribute", *rows]), "utf-8")
    web = new_web(changes={"marked_days": days, "self_declared_attributes": declared})
    simulated_store.write(platform, web.store)
    rollups.rebuild(web.store)
    schema.create_views(web.store)
    web.start()
    return web


def patient(tab: Tab, path: str) -> Page:
    """Open a page for whose analysis nothing was computed yet."""
    tab.page.set_default_timeout(PATIENCE_MS)
    return tab.open(path)


def clicks(page: Page) -> int:
    return int(page.evaluate("Number(localStorage.getItem('clicks'))"))


def test_an_analyst_answers_whether_the_training_helped(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, None).page
    page.set_default_timeout(PATIENCE_MS)
    page.add_init_script(CLICKS)
    page.goto(f"{web.url}/sign-in")
    page.fill("[name=name]", "ana")
    page.fill("[name=password]", PASSWORD)
    page.click("main button")
    expect(page.get_by_role("heading", level=1)).to_have_text("Analytics")
    page.get_by_role("link", name="Did the training help?").click()
    answer = page.locator(".answer-sentence")
    told = rf"empathy index .*the training “Listening” on {TRAINING:%-d %B %Y}"
    turned = rf"the training “Listening” on {TRAINING:%-d %B %Y}, the empathy index is"
    expect(answer).to_have_text(re.compile(f"{told}|{turned}"))
    expect(answer).to_have_text(re.compile(r"95 % interval \S+ to|cannot be said: \w+"))
    expect(page.locator(".marks")).to_contain_text("training “Listening”")
    expect(page.locator(".marks")).to_contain_text("model synthetic-2 begins to score")
    page.get_by_text("Method and limits").click()
    expect(page.locator(".method")).to_contain_text("Interrupted time series")
    page.get_by_label("Measure").select_option("explorations")
    page.get_by_role("button", name="Show").click()
    expect(answer).to_contain_text("explorations")
    expect(page.get_by_label("Measure")).to_have_value("explorations")
    assert clicks(page) <= 5
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text("utf-8-sig"))))
    assert {row["measure"] for row in rows} == {"explorations"}


def test_dragging_over_a_curve_zooms_and_a_link_leads_back(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = patient(open_tab(web, "ana", "/help"), "/analytics/service-levels")
    chart = page.locator("svg.bands").first
    before = page.locator(".answer-sentence").inner_text()
    points = chart.locator("circle").count()
    box = chart.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.4 * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], y, steps=4)
    expect(page.locator(".zooming")).to_be_visible()
    page.mouse.up()
    page.wait_for_url(re.compile(r"first=\d{4}-\d\d-\d\d"))
    expect(page.get_by_label("Zoom from")).not_to_have_value("")
    assert 1 < chart.locator("circle").count() < points
    assert page.locator(".answer-sentence").inner_text() == before
    page.get_by_role("link", name="Show all dates").click()
    expect(chart.locator("circle")).to_have_count(points)


def test_everything_works_without_javascript(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = patient(open_tab(web, "ana", "/help", java_script_enabled=False), "/analytics/fairness")
    subgroup = page.get_by_label("Subgroup")
    subgroup.select_option(index=1)
    chosen = subgroup.input_value()
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_label("Subgroup")).to_have_value(chosen)
    expect(page.locator("tbody th").first).to_have_text(re.compile(chosen, re.IGNORECASE))
    page.goto(f"{web.url}/analytics/service-levels")
    page.get_by_label("Zoom from").fill(f"{TRAINING:%Y-%m-%d}")
    page.get_by_role("button", name="Zoom").click()
    expect(page.get_by_label("Zoom from")).to_have_value(f"{TRAINING:%Y-%m-%d}")
    expect(page.get_by_label("Date of the training")).to_have_value(f"{TRAINING:%Y-%m-%d}")


def test_the_report_is_two_pages_on_paper_in_the_console_and_as_a_file(
    web: ScoredWeb, open_tab: OpenTab, tmp_path: Path
) -> None:
    page = patient(open_tab(web, "ana", "/help"), "/analytics")
    page.get_by_role("link", name="Report").click()
    for heading in ("What changed", "How sure", "By which model", "What to look at"):
        expect(page.get_by_role("heading", name=heading)).to_be_visible()
    expect(page.locator(".said")).to_contain_text("the training “Listening” on")
    expect(page.get_by_label("Date of the training")).to_have_value(f"{TRAINING:%Y-%m-%d}")
    assert printed_pages(page) == 2
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as a file").click()
    file = tmp_path / "report.html"
    file.write_bytes(Path(download.value.path()).read_bytes())
    page.goto(f"file://{file}")
    expect(page.locator(".said")).to_contain_text("the training “Listening” on")
    assert printed_pages(page) == 2


def printed_pages(page: Page) -> int:
    printed = page.pdf(prefer_css_page_size=True)
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", printed))


@pytest.mark.parametrize("window", WINDOWS)
def test_no_label_is_overprinted_and_pages_fit_the_window(
    web: ScoredWeb, open_tab: OpenTab, window: str
) -> None:
    tab = open_tab(web, "ana", "/help", **WINDOWS[window])
    found, widths, overprinted, long = [], {}, {}, {}
    for path in PATHS:
        page = patient(tab, path)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        if path not in ("/analytics", REPORT):
            expect(page.locator(".answer-sentence")).not_to_be_empty()
            expect(page.locator("svg.bands, svg.interval").first).to_be_visible()
        widths[path] = page.evaluate("document.documentElement.scrollWidth")
        overprinted[path] = page.evaluate(OVERPRINTED)
        long[path] = page.evaluate(LONG_CAPTIONS)
        page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
        found += [(path, *one) for one in grave_violations(page)]
    assert {path: some for path, some in overprinted.items() if some} == {}
    assert {path: some for path, some in long.items() if some} == {}
    assert found == []
    assert set(widths.values()) == {WINDOWS[window]["viewport"]["width"]}, widths
