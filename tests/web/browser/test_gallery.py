"""Every page of every role opens; `make gallery` also takes its pictures.

Then each page is opened wide and narrow, in light and dark colours, and pages.md shows the
pictures by role. They are not part of the repository.
"""

import base64
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page

from stream_app.analytics.views import schema
from stream_app.demo import history
from stream_app.settings import DEFAULT_RULES, RulesSource
from stream_app.store.alerts import alerts, rule_versions
from stream_app.store.alerts.alerts import AlertFilter
from stream_app.store.sessions.scope import ALL_SESSIONS
from tests.web.api.role_table import PAGES, ROLES
from tests.web.browser.conftest import PHONE, WIDE, NewWeb, OpenTab
from tests.web.browser.scored_web import ScoredWeb, scorer

FOLDER: Final = os.environ.get("RAPPORT_GALLERY")
PEOPLE: Final = {"supervisor": "sue", "counsellor": "cleo", "analyst": "ana", "admin": "ada"}
SPEAKER: Final = "cleo@example.org"
NO_PAGES: Final = re.compile(
    r"/(healthz|readyz|sign-in/.*|live-total|.*/card|.*/now|.*/interventions|sessions/\{session_id\}/turns/\{seq\}|.*/table|.*/file)"
)
"""Health checks, redirects, parts of pages and files."""
LOOKS: Final[tuple[dict[str, Any], ...]] = tuple(
    {"viewport": size, "has_touch": size is PHONE, "color_scheme": look, "timezone_id": "UTC"}
    for look in ("light", "dark")
    for size in (WIDE, PHONE)
)
OPENED: Final = LOOKS if FOLDER is not None else LOOKS[:1]
ANALYSIS_MS: Final = 120_000
"""A web process imports what the first analysis needs, and other tests may use its cores."""
HEIGHT: Final = 360
MAX_BYTES: Final = 150_000
JOINED: Final = """async ([pictures, height]) => {
  const images = await Promise.all(pictures.map(async (data) => {
    const image = new Image();
    image.src = "data:image/jpeg;base64," + data;
    await image.decode();
    return image;
  }));
  const canvas = document.createElement("canvas");
  const widths = images.map((one) => Math.round(one.width * height / one.height));
  canvas.width = widths.reduce((sum, one) => sum + one + 8, -8);
  canvas.height = height;
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  let left = 0;
  images.forEach((one, place) => {
    context.drawImage(one, left, 0, widths[place], height);
    left += widths[place] + 8;
  });
  return canvas.toDataURL("image/webp", 0.7).split(",")[1];
}"""


RENAMED: Final = """(folder) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    if (text.data.includes(folder)) text.data = text.data.replaceAll(folder, "/var/lib/rapport");
  }
}"""
"""The folder of the test is nobody's."""


@pytest.fixture(scope="module")
def web(new_web: NewWeb, live_broker: str) -> ScoredWeb:
    """The demo's half-year of synthetic sessions, and live ones, some of them Cleo's."""
    changes = {"topic_prefix": "gallery", "rules_source": RulesSource.DATABASE}
    web = new_web(broker=live_broker, changes=changes)
    history.write(web.store, web.settings.marked_days)
    mine: dict[str, Any] = {"team": "north", "counsellor": SPEAKER}
    half = timedelta(minutes=10)
    web.play_sample("customer-service-02", "chat-0936", ago=half, until=12, **mine)
    web.play_sample("counselling-04", "chat-0941", ago=half, until=20, **mine)
    web.play_sample("peer-support-05", "peer-2207", ago=half, until=12, team="south")
    for number in range(4):
        ago = timedelta(days=7 * number + 8)
        web.play_sample(f"counselling-0{number + 1}", f"chat-080{number}", ago=ago, **mine)
    schema.create_views(web.store)
    shipped = DEFAULT_RULES.read_text("utf-8")
    first = rule_versions.save(web.store, shipped, "sue", "As shipped")
    rule_versions.adopt(web.store, first, "ada", "To begin with")
    rule_versions.save(web.store, shipped.replace("90s", "60s"), "sue", "Silences end earlier")
    web.start_live()
    return web


def pages(role: str) -> Iterator[str]:
    """Paths of the pages that a role may open."""
    for (method, path), row in PAGES.items():
        may = row.public or row.roles[ROLES.index(role)] == "y"
        if method == "get" and may and not NO_PAGES.fullmatch(path):
            yield path


def examples(web: ScoredWeb) -> dict[str, str]:
    """What stands for the parameters of paths."""
    fired = AlertFilter(states=frozenset({alerts.ShownState.FIRING}))
    return {
        "session_id": "chat-0800",
        "seq": "1",
        "episode_id": alerts.find(web.store, ALL_SESSIONS, fired).items[0].episode_id,
        "pseudonym": web.store.privacy.pseudonym(SPEAKER),
        "sample_id": sample(web),
        "review_id": review(web),
        "goal_id": goal(web),
        "place": "1",
        "name": "sue",
        "topic": "index",
        "question": "service-levels",
        "version": "2",
    }


def sample(web: ScoredWeb) -> str:
    """A calibration sample, made once."""
    with web.client() as client:
        known = client.get("/samples").json()
        if not known:
            body = {"title": "Five turns", "bundle": scorer().bundle_id, "size": 5}
            client.post("/samples", json=body).raise_for_status()
            known = client.get("/samples").json()
    return str(known[0]["sample_id"])


def review(web: ScoredWeb) -> str:
    """An open review of Sue's, made once."""
    with web.client() as client:
        known = client.get("/reviews", params={"reviewer": "sue"}).json()
        if not known:
            body = {"session_id": "chat-0800", "reviewer": "sue", "due_at": "2100-01-02T00:00:00Z"}
            client.post("/reviews", json=body).raise_for_status()
            known = client.get("/reviews", params={"reviewer": "sue"}).json()
    return str(known[0]["review_id"])


def goal(web: ScoredWeb) -> str:
    """A goal that Sue set for Cleo, made once."""
    with web.client() as client:
        known = client.get("/goals").json()
        if not known:
            today = datetime.now(UTC).date()
            body = {
                "counsellor": web.store.privacy.pseudonym(SPEAKER),
                "measure": "explorations",
                "goal": "Ask what it was like, then wait for the answer.",
                "starts_on": str(today - timedelta(days=14)),
                "ends_on": str(today + timedelta(days=42)),
            }
            client.post("/goals", json=body).raise_for_status()
            known = client.get("/goals").json()
    return str(known[0]["goal_id"])


@pytest.mark.parametrize("role", PEOPLE)
def test_every_page_opens(web: ScoredWeb, open_tab: OpenTab, role: str) -> None:
    known = examples(web)
    tabs = [open_tab(web, PEOPLE[role], "/help", **look) for look in OPENED]
    for path in pages(role):
        address = re.sub(r"\{(\w+)\}", lambda name: known[name[1]], path)
        pictures = []
        for tab in tabs:
            tab.page.set_default_timeout(ANALYSIS_MS)
            answer = tab.page.goto(web.url + address)
            assert answer is not None, path
            assert answer.status == 200, path
            if FOLDER is not None:
                tab.page.evaluate(RENAMED, str(web.folder))
                shot = tab.page.screenshot(type="jpeg", quality=90, animations="disabled")
                pictures.append(base64.b64encode(shot).decode())
        if FOLDER is not None:
            keep(Path(FOLDER), joined(tabs[0].page, pictures), f"{role}-{slug(path)}")
    if FOLDER is not None:
        (Path(FOLDER) / "pages.md").write_text(document(), encoding="utf-8")


def document() -> str:
    """The pictures by role."""
    parts = [
        "# Every page by role\n\nWide and narrow, in light and dark colours, with shipped sample "
        "sessions and the demo's synthetic history.\n"
    ]
    for role in PEOPLE:
        parts.append(f"\n## {role.capitalize()}\n")
        for path in pages(role):
            name = f"pages/{role}-{slug(path)}.webp"
            parts.append(f"\n`{path}`\n\n![{path}, {role}]({name})\n")
    return "".join(parts)


def joined(page: Page, pictures: list[str]) -> bytes:
    """The pictures side by side as WebP."""
    page.goto("about:blank")
    return base64.b64decode(page.evaluate(JOINED, [pictures, HEIGHT]))


def slug(path: str) -> str:
    """A file's name."""
    return re.sub(r"[^a-z]+", "-", re.sub(r"[{}]", "", path)).strip("-") or "wall"


def keep(folder: Path, picture: bytes, name: str) -> None:
    assert picture.startswith(b"RIFF"), name
    assert len(picture) < MAX_BYTES, f"{name} has {len(picture)} bytes"
    pages = folder / "pages"
    pages.mkdir(parents=True, exist_ok=True)
    (pages / f"{name}.webp").write_bytes(picture)
