"""The wall with many sessions: groups, search, density, pins, and the alarm of critical alerts."""

import json
import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.web.browser.conftest import UNTIL_SORTED_MS, NewWeb, OpenTab
from tests.web.browser.scored_web import ScoredWeb, turn

HALF = timedelta(minutes=10)
CLEO = "cleo@example.org"
RULES = """
version: 1
rules:
  - name: many-turns
    summary: The session has many turns.
    severity: critical
    when: counsellor_turns >= 3
"""


@pytest.fixture(scope="module")
def web(new_web: NewWeb, live_broker: str, tmp_path_factory: pytest.TempPathFactory) -> ScoredWeb:
    rules = tmp_path_factory.mktemp("rules") / "rules.yaml"
    rules.write_text(RULES)
    web = new_web(broker=live_broker, changes={"topic_prefix": "choices", "rules": rules})
    web.play_sample("counselling-05", "calm", ago=HALF, until=4, team="north", counsellor=CLEO)
    web.play_sample("counselling-04", "middle", ago=HALF, until=4, team="north")
    web.play_sample("peer-support-05", "other", ago=HALF, until=4, team="south")
    web.start_live()
    return web


def shown(page: Page) -> list[str]:
    found: list[str] = page.eval_on_selector_all(
        "#cards .card:not([hidden])", "cards => cards.map(card => card.dataset.session)"
    )
    return found


def test_the_search_hides_cards_while_typing_and_without_javascript(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web).open("/")
    page.fill("#search", "CLEO")
    expect(page.locator("#cards .card:not([hidden])")).to_have_count(1)
    assert shown(page) == ["calm"]
    expect(page).to_have_url(re.compile("search=CLEO"))
    page.locator("h1").click()  # leaving the field does not load the page
    assert page.evaluate("document.querySelector('#cards .card[hidden]') !== null")
    page.fill("#search", "nothing like this")
    expect(page.locator("#no-match")).to_be_visible()
    page.fill("#search", "")
    expect(page.locator("#cards .card:not([hidden])")).to_have_count(3)
    static = open_tab(web, java_script_enabled=False).open("/?search=south")
    assert shown(static) == ["other"]


def test_groups_are_teams_and_new_sessions_find_theirs(web: ScoredWeb, open_tab: OpenTab) -> None:
    tab = open_tab(web)
    page = tab.open("/")
    page.select_option("[name=group]", "team")  # submits the form
    expect(page).to_have_url(re.compile("group=team"))
    tab.wait_until_live()
    titles = page.locator(".group > h2")
    expect(titles).to_have_text([re.compile(r"^north\s+2"), re.compile(r"^south\s+1")])
    web.commit_and_publish(*(turn("late", seq, f"{seq}: hello", team="mid") for seq in range(4)))
    expect(titles).to_have_text([re.compile("^mid"), re.compile("^north"), re.compile("^south")])
    expect(page.locator("[data-team=mid] [data-session=late]")).to_be_visible()
    end = {"type": "session_end", "session_id": "late", "occurred_at": web.now().isoformat()}
    web.commit_and_publish(json.dumps(end).encode())
    gone = page.locator(".group[data-team=mid]")
    expect(gone).to_have_count(0, timeout=UNTIL_SORTED_MS)


def test_compact_cards_are_lower_and_keep_what_matters(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web).open("/")
    high = page.locator("[data-session=calm]").bounding_box()
    page = open_tab(web).open("/?density=compact")
    low = page.locator("[data-session=calm]").bounding_box()
    assert high is not None
    assert low is not None
    assert low["height"] < 0.6 * high["height"]
    for part in (".risk .value", "h2", ".who", ".sparkline", ".pin button"):
        expect(page.locator(f"[data-session=calm] {part}").first).to_be_visible()


def test_a_pinned_session_is_first_for_this_person_alone(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web).open("/")
    last = shown(page)[-1]
    page.locator(f"[data-session={last}] .pin button").click()
    expect(page.locator(f"[data-session={last}]")).to_have_class(re.compile("pinned"))
    page.reload()
    assert shown(page)[0] == last
    assert shown(open_tab(web, "ana").open("/"))[-1] == last
    static = open_tab(web, java_script_enabled=False).open("/?group=team")
    static.locator(f"[data-session={last}] .pin button").click()
    expect(static).to_have_url(re.compile(r"/\?group=team$"))
    expect(static.locator(".card.pinned")).to_have_count(0)


def test_critical_alerts_sound_and_notify_once_that_is_chosen(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    tab = open_tab(web, permissions=["notifications"])
    page = tab.page
    page.add_init_script(
        "window.rung = []; window.Notification = class { static permission = 'granted';"
        " static requestPermission() { return Promise.resolve('granted'); }"
        " constructor(title, options) { window.rung.push(`${title}: ${options.body}`); } };"
    )
    tab.open("/")
    tab.wait_until_live()
    _raise_alert(web, "silent")
    expect(page.locator("[data-session=silent] .alert-badge.firing")).to_be_visible()
    assert page.evaluate("window.rung") == []
    expect(page.locator("#alarm")).not_to_have_attribute("data-sounded", re.compile("."))
    page.get_by_label("sound").check()
    page.get_by_label("browser notification").check()
    page.reload()
    tab.wait_until_live()
    expect(page.get_by_label("sound")).to_be_checked()
    _raise_alert(web, "loud")
    page.wait_for_function("() => window.rung.length === 1")
    assert page.evaluate("window.rung") == ["Critical alert: many-turns in session loud"]
    expect(page.locator("#alarm")).to_have_attribute("data-sounded", "1")


def _raise_alert(web: ScoredWeb, session: str) -> None:
    web.commit_and_publish(*(turn(session, seq, f"{seq}: all right") for seq in range(8)))
