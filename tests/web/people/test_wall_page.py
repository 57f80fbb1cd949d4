"""A wall that does not show all sessions: order, number, "Show more" and search, by role."""

import re
from unittest.mock import patch

import httpx
import pytest
import sqlalchemy as sa

from stream_app.store.accounts import pins
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from stream_app.web.console.overviews import wall
from tests.store import batches
from tests.store.judging import NOOR
from tests.web.people.conftest import As

SESSIONS = 6


@pytest.fixture
def live(filled: Store) -> Store:
    """Open sessions ``live-0``, … of team north, without alerts; the last has the highest risk."""
    for number in range(SESSIONS):
        events = [
            batches.turn(
                seq, session_id=f"live-{number}", team="north", speaker_id=NOOR if seq % 2 else "c"
            )
            for seq in range(4)
        ]
        filled.commit(batches.process(events))
    scores = tables.session_scores
    with filled.transaction() as connection:
        connection.execute(sa.delete(tables.alerts))
        for number in range(SESSIONS):
            changed = sa.update(scores).where(scores.c.session_id == f"live-{number}")
            connection.execute(changed.values(low_empathy_risk=number / 10))
    return filled


def cards(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200
    return re.findall(r'<li class="card[^>]* data-session="([^"]+)"(?![^>]* hidden>)', answer.text)


def test_the_most_urgent_sessions_are_shown_and_the_others_counted(live: Store, as_: As) -> None:
    sue = as_("sue")
    answer = sue.get("/?shown=2&density=compact")
    assert cards(answer) == ["live-5", "live-4"]
    assert ">of 6</span>" in answer.text
    [more] = re.findall(r'<a class="button" href="([^"]+)">Show 2 more</a>', answer.text)
    assert cards(sue.get(more.replace("&amp;", "&"))) == ["live-5", "live-4", "live-3", "live-2"]
    assert "of 6" in sue.get("/live-total?team=&domain=").text
    pins.pin(live, "sue", "live-0")
    assert cards(sue.get("/?shown=2")) == ["live-0", "live-5"]
    assert cards(as_("ben").get("/?shown=2")) == ["live-5", "live-4"]


def test_a_wall_that_shows_all_sessions_offers_no_more(live: Store, as_: As) -> None:
    text = as_("sue").get("/").text
    assert "data-most" not in text
    assert 'id="rest" hidden' in text


@pytest.mark.parametrize("shown", ["0", "501", "x"])
def test_a_number_of_cards_outside_the_limits_is_refused(as_: As, shown: str) -> None:
    assert as_("sue").get(f"/?shown={shown}").status_code == 422


def test_a_search_finds_sessions_without_a_card(live: Store, as_: As) -> None:
    sue = as_("sue")
    assert cards(sue.get("/?shown=2&search=LIVE-0")) == ["live-0"]
    assert cards(sue.get("/?shown=2&search=noor")) == ["live-5", "live-4"]
    nothing = sue.get("/?shown=2&search=nothing")
    assert cards(nothing) == []
    assert re.search(r'id="quiet"[^>]* hidden', nothing.text)
    assert not re.search(r'id="no-match" hidden', nothing.text)


def test_analysts_cannot_find_sessions_by_a_counsellors_words(live: Store, as_: As) -> None:
    words = wall.short_form(live.privacy.pseudonym(NOOR))
    for shown in (2, 50):
        assert cards(as_("ana").get(f"/?shown={shown}&search={words}")) == []
        assert cards(as_("ana").get(f"/?shown={shown}&search=live-1")) == ["live-1"]


def test_supervisors_of_another_team_find_and_count_nothing(live: Store, as_: As) -> None:
    assert cards(as_("sam").get("/?shown=1")) == []
    assert cards(as_("sam").get("/?shown=1&search=live")) == []
    assert 'id="total" hidden' in as_("sam").get("/live-total").text


def test_manifests_are_read_once(live: Store, as_: As) -> None:
    sue = as_("sue")
    sue.get("/")
    with patch("stream_app.store.sessions.bundle_info._info", side_effect=AssertionError):
        assert len(cards(sue.get("/"))) == SESSIONS
