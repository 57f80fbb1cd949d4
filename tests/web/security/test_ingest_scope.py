"""A token limited to a team, a domain or a channel sends events of those sessions alone."""

import json
from typing import Any

import pytest
from pydantic import SecretStr

from stream_app import bootstrap
from stream_app.contracts.events import decode
from stream_app.settings import Settings
from stream_app.store.people import IngestScope, People, Person
from stream_app.store.repository import Store
from stream_app.store.roles import PersonRole
from stream_app.web import ingest_scope
from tests.store import databases
from tests.store.batches import consent, end, outcome, process, turn
from tests.web.people.client import Client

NORTH = IngestScope(team="north", channel="chat")


def refusals(store: Store, *events: bytes, scope: IngestScope = NORTH) -> list[str | None]:
    decoded = [decode(event) for event in events]
    known = ingest_scope.origins(store, [event.session_id for event in decoded])
    return [ingest_scope.refusal(scope, event, known) for event in decoded]


def new(**fields: Any) -> bytes:
    return turn(session_id="new", **{"team": "north", "channel": "chat", **fields})


def test_the_turn_that_begins_a_session_states_what_the_token_is_limited_to(filled: Store) -> None:
    assert refusals(filled, new(), new(seq=1, team=None), end(session_id="new")) == [None] * 3
    [team] = refusals(filled, new(team="south"))
    [missing] = refusals(filled, new(channel=None))
    assert team == "this token may only send events of team north"
    assert missing == "this token needs channel: chat in the turn that begins a session"


@pytest.mark.parametrize(
    "event",
    [
        turn(9, session_id="south-0", team="north", speaker_id="olu@example.org"),
        turn(9, session_id="south-0"),
        end(session_id="south-0"),
        outcome(session_id="south-0"),
    ],
)
def test_sessions_of_another_team_are_out_of_reach(filled: Store, event: bytes) -> None:
    [reason] = refusals(filled, event, scope=IngestScope(team="north"))
    assert reason is not None
    assert "another session id" in reason
    assert refusals(filled, event, scope=IngestScope(team="south"))[0] is None or b"north" in event
    assert refusals(filled, event, scope=IngestScope()) == [None]


def test_a_limited_token_records_no_consent_before_the_first_turn(filled: Store) -> None:
    """Otherwise it would decide about whichever session takes the id."""
    early = consent("withdrawn", session_id="new")
    [reason] = refusals(filled, early)
    assert reason is not None
    assert "after the session's first turn" in reason
    assert refusals(filled, new(), early) == [None, None]
    assert refusals(filled, early, scope=IngestScope()) == [None]
    south = refusals(filled, consent("given", session_id="south-0"), scope=IngestScope("north"))
    assert south != [None]


def test_a_consent_record_does_not_settle_the_origin_of_a_session(filled: Store) -> None:
    filled.commit(process([consent("given", session_id="new")]))
    assert refusals(filled, new()) == [None]


def test_the_api_refuses_such_events_by_themselves(filled: Store, tmp_path: Any) -> None:
    people = People(filled)
    people.add(Person("pump", PersonRole.INGEST), None)
    token = people.create_token("pump", "test", sends=IngestScope(team="north"))
    url = SecretStr(databases.sqlite(tmp_path / "rapport.db"))
    app = bootstrap.web(Settings().model_copy(update={"database_url": url}))
    batch = [json.loads(turn(9, session_id="south-0")), {"type": "turn"}]
    answer = Client(app, token).post("/api/v1/events", json=batch)
    assert answer.status_code == 202
    assert [each["code"] for each in answer.json()["results"]] == ["out-of-scope", "schema"]
