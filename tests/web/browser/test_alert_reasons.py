"""Two alerts of one session: wall, inbox and session's page show both, with the same reasons."""

from datetime import timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from tests.web.browser.conftest import NewWeb, OpenTab
from tests.web.browser.scored_web import ScoredWeb, turn

COLD = "You are overreacting. Get over it."
SAID = (
    "I feel so alone since my mother died, and nobody here seems to care about that.",
    "I have cried every night this week. It hurts so much.",
    "I am so scared that this will never stop. I feel worthless.",
    "I feel completely hopeless, and so tired of it all.",
    "It hurts. I miss her so much that I cannot breathe.",
    "Nobody understands how sad and lonely I am.",
    "I am desperate. I want to kill myself.",
)


@pytest.fixture(scope="module")
def web(new_web: NewWeb) -> ScoredWeb:
    web = new_web()
    events = []
    for place, words in enumerate(SAID):
        events.append(turn("twice", 2 * place, words, domain="peer-support", team="north"))
        events.append(turn("twice", 2 * place + 1, COLD))
    web.commit(*events)
    web.play_sample("peer-support-01", "calm", ago=timedelta(minutes=5), until=6)
    web.start()
    return web


def reasons(where: Locator) -> set[str]:
    return set(where.locator(".reason").all_inner_texts())


def shown(page: Page) -> tuple[set[str], list[str]]:
    """Reasons, and quotations in order of their alerts' reasons."""
    return reasons(page.locator("main")), sorted(page.locator(".exchanges q").all_inner_texts())


def test_wall_inbox_and_session_show_both_alerts_with_the_same_reason(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    tab = open_tab(web, to="/")
    card = tab.page.locator("[data-session=twice]")
    expect(card.locator(".alert-badge")).to_have_count(2)
    on_wall = reasons(card)
    assert len(on_wall) == 2
    assert any("got no empathic answer; usual in peer support" in each for each in on_wall)
    expect(card).not_to_contain_text("worthless")
    in_inbox, quoted = shown(tab.open("/alerts?state=firing"))
    assert in_inbox == on_wall
    assert SAID[-1] in quoted
    assert COLD in quoted
    on_page, on_session = shown(tab.open("/sessions/twice"))
    assert on_page == on_wall
    assert on_session == quoted
    expect(tab.page.locator("#alerts .expected")).to_have_count(2)
    tab.page.locator("#alerts .exchanges .client a").first.click()
    expect(tab.page.locator(f"#turn-{tab.page.url.rpartition('-')[2]}")).to_be_in_viewport()


def test_reading_the_words_in_the_inbox_is_audited(web: ScoredWeb, open_tab: OpenTab) -> None:
    tab = open_tab(web, to="/")

    def reads() -> int:
        found = audit.latest(web.store, "twice")
        return sum(entry.action == AuditAction.READ_TRANSCRIPT.value for entry in found)

    before = reads()
    tab.open("/")
    assert reads() == before, "the wall quotes nothing"
    tab.open("/alerts?state=firing")
    assert reads() == before + 1
