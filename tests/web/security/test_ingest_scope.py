"""A token limited to a team, a domain or a channel sends events of those sessions alone."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import SecretStr

from stream_app import bootstrap
from stream_app.contracts.events import decode
from stream_app.settings import Settings
from stream_app.store.accounts.people import ANY_SESSION, IngestScope, People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.stream import turn_numbers
from stream_app.store.stream.repository import Store
from stream_app.web.ingest.ingest import EventResult, _refuse_other_sessions, _Valid
from stream_app.web.services import Services
from tests.fakes import delete, edit
from tests.store import databases
from tests.store.batches import consent, end, outcome, process, turn
from tests.web.people.client import Client

NORTH = IngestScope(team="north", channel="chat")


def refusals(store: Store, *events: bytes, scope: IngestScope = NORTH) -> list[str | None]:
    """What the gateway says of each event."""
    valid = {index: _Valid(decode(event), event) for index, event in enumerate(events)}
    results = [EventResult(index, accepted=False) for index in valid]
    pump = Person("pump", PersonRole.INGEST, sends=scope)
    sender = turn_numbers.owner_of("pump", scope.limits)
    services = cast("Services", SimpleNamespace(store=store))
    _refuse_other_sessions(services, pump, sender, results, valid)
    return [result.detail for result in results]


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
    assert refusals(filled, event, scope=IngestScope()) == [None] or b"north" in event


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


def test_a_limited_token_ends_no_session_before_its_first_turn(filled: Store) -> None:
    early = end(session_id="new")
    [reason] = refusals(filled, early)
    assert reason == "this token may send an end only after the session's first turn"
    assert refusals(filled, new(), early) == [None, None]
    assert refusals(filled, early, scope=IngestScope()) == [None]


def begin(store: Store, account: str, scope: IngestScope, session_id: str = "new") -> None:
    """As if a web process had taken the session's first turn, which no worker has stored yet."""
    sender = turn_numbers.owner_of(account, scope.limits)
    sent = [turn_numbers.SentTurn(session_id, 0)]
    with store.transaction() as connection:
        turn_numbers.assign(store, connection, sent, datetime.now(UTC), sender)


def test_a_limited_token_ends_its_own_session_before_a_turn_is_stored(filled: Store) -> None:
    begin(filled, "pump", NORTH)
    assert refusals(filled, end(session_id="new"), consent(session_id="new")) == [None, None]


def test_a_limited_token_ends_no_session_that_another_began(filled: Store) -> None:
    for account, scope in (("other", NORTH), ("pump", IngestScope("south")), ("pump", ANY_SESSION)):
        begin(filled, account, scope, f"of {account} {scope.team}")
        name = f"of {account} {scope.team}"
        taken = turn(session_id=name, team="north", channel="chat")
        _, ended, consented = refusals(
            filled, taken, end(session_id=name), consent("withdrawn", session_id=name)
        )
        assert ended is not None
        assert consented is not None


def test_turns_are_revised_by_whoever_began_their_session(filled: Store) -> None:
    begin(filled, "other", ANY_SESSION)
    begin(filled, "pump", ANY_SESSION, "own")
    for revision in (edit, delete):
        foreign, own = (revision(name) for name in ("new", "own"))
        [reason, nothing] = refusals(filled, foreign, own, scope=ANY_SESSION)
        assert reason == turn_numbers.REFUSALS[turn_numbers.TAKEN]
        assert nothing is None
        assert refusals(filled, revision("unknown"), scope=NORTH) != [None]


@pytest.mark.parametrize(
    "stated", [{"team": "south"}, {"domain": "peer-support"}, {"channel": "chat"}]
)
def test_a_turn_that_contradicts_its_session_is_refused(
    filled: Store, stated: dict[str, str]
) -> None:
    known = {"team": "north", "domain": "counselling", "channel": "voice"}
    filled.commit(process([turn(session_id="new", **known)]))
    anybody = IngestScope()
    [reason] = refusals(filled, turn(1, session_id="new", **stated), scope=anybody)
    assert reason is not None
    assert next(iter(stated)) in reason
    assert not any(value in reason for value in stated.values())
    fitting = [turn(1, session_id="new", **known), turn(2, session_id="new")]
    assert refusals(filled, *fitting, scope=anybody) == [None, None]
    together = [turn(session_id="x", **known), turn(1, session_id="x", **stated)]
    assert [each is None for each in refusals(filled, *together, scope=anybody)] == [True, False]


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
    assert answer.status_code == 422
    assert [each["code"] for each in answer.json()["results"]] == ["out-of-scope", "schema"]
