"""A token can have fewer rights than its account, and expires."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import SecretStr

from stream_app import bootstrap
from stream_app.settings import Settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.people import People, PersonError
from stream_app.store.accounts.roles import Right
from stream_app.store.alerts import alert_actions, alerts
from stream_app.store.alerts.alerts import ActionKind, AlertFilter
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store
from stream_app.work.account_changes import AccountChanges
from tests.web.people.client import Client

Limited = Callable[..., Client]
SCORES, TEXT, ACT = Right.READ_SCORES, Right.READ_TEXT, Right.ACT
NOTE = "she sounded far away"


@pytest.fixture
def settings(filled: Store) -> Settings:
    url = SecretStr(filled.engine.url.render_as_string())
    return Settings().model_copy(update={"database_url": url})


@pytest.fixture
def limited(filled: Store, settings: Settings) -> Limited:
    """Makes clients with a token of these rights."""
    app = bootstrap.web(settings)

    def new(name: str, *rights: Right) -> Client:
        return Client(app, People(filled).create_token(name, "test", rights=frozenset(rights)))

    return new


def test_a_token_for_scores_reads_no_text_and_changes_nothing(
    limited: Limited, filled: Store
) -> None:
    alert = alerts.find(filled, ALL_SESSIONS, AlertFilter(session_id="north-0"), limit=1).items[0]
    alert_actions.record_action(
        filled, ALL_SESSIONS, alert.episode_id, ActionKind.NOTE, "sue", None, NOTE
    )
    program = limited("sue", SCORES)
    assert program.get("/api/v1/sessions/north-0").status_code == 200
    turns = program.get("/api/v1/sessions/north-0/turns").json()["items"]
    assert turns
    assert {turn["text"] for turn in turns} == {None}
    assert NOTE not in program.get(f"/api/v1/alerts/{alert.episode_id}").text
    assert NOTE in limited("sue", SCORES, TEXT).get(f"/api/v1/alerts/{alert.episode_id}").text
    assert program.get("/api/v1/exports/turns", params={"text": True}).status_code == 403
    refused = program.get("/api/v1/sessions/north-0/feedback")
    assert refused.status_code == 403
    assert refused.json()["detail"] == "this token lacks the right read-text"
    rating = {"session_id": "north-0", "seq": 1, "head": "explorations", "value": 1}
    assert program.post("/api/v1/ratings", json=rating).status_code == 403
    assert limited("sue", ACT).post("/api/v1/ratings", json=rating).status_code == 200


def test_actions_return_no_notes_to_a_token_that_reads_no_text(
    limited: Limited, filled: Store
) -> None:
    alert = alerts.find(filled, ALL_SESSIONS, AlertFilter(session_id="north-0"), limit=1).items[0]
    for rights, shown in (((ACT,), False), ((ACT, TEXT), True)):
        body = {"note": NOTE}
        address = f"/api/v1/alerts/{alert.episode_id}/note"
        answer = limited("sue", *rights).post(address, json=body)
        assert answer.status_code == 200
        assert (NOTE in answer.text) == shown


def test_limited_tokens_open_no_page(limited: Limited) -> None:
    everything = limited("sue", SCORES, TEXT, ACT)
    for path in ("/", "/sessions/north-0", "/sessions/north-0/now", "/alerts", "/password"):
        assert everything.get(path).status_code == 403, path


def test_the_account_says_what_its_token_may_do(limited: Limited) -> None:
    me = limited("sue", ACT, SCORES).get("/api/v1/me").json()
    assert (me["rights"], me["reads_transcripts"]) == (["act", "read-scores"], False)


def test_tokens_made_by_the_command_read_scores_unless_told_otherwise(
    filled: Store,
) -> None:
    people, changes = People(filled), AccountChanges(filled, audit.COMMAND_LINE)

    def rights(token: str) -> frozenset[Right] | None:
        person = people.find_by_token(token)
        assert person is not None
        return person.rights

    assert rights(changes.new_token("sue", "report", 30)) == {SCORES}
    both = changes.new_token("sue", "desk", 30, rights=[SCORES, ACT])
    assert rights(both) == {SCORES, ACT}


@pytest.mark.parametrize(
    ("name", "right"),
    [("ana", TEXT), ("ada", ACT), ("sue", Right.READ_AUDIT), ("sue", Right.SEND_EVENTS)],
)
def test_a_token_has_no_right_that_its_role_lacks(filled: Store, name: str, right: Right) -> None:
    with pytest.raises(PersonError, match="a token of the role"):
        AccountChanges(filled, audit.COMMAND_LINE).new_token(name, "more", 30, rights=[right])


def test_a_token_expires_after_its_days(limited: Limited, filled: Store) -> None:
    now = datetime.now(UTC)
    people = People(filled)
    assert people.find_by_token(people.create_token("sue", "old", now - timedelta(seconds=1))) is (
        None
    )
    assert people.find_by_token(people.create_token("sue", "new", now + timedelta(days=1)))
