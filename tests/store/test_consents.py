"""Which sessions' consent includes a purpose."""

from stream_app.contracts.events import ConsentPurpose
from stream_app.core.session.session_state import Versioned
from stream_app.store.sessions import consents
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store
from tests.store import batches

PURPOSE = ConsentPurpose.THIRD_PARTY_PROCESSING
AGREED = {"status": "given", "purposes": [PURPOSE.value]}


def commit(store: Store, name: str, *events: bytes) -> None:
    states: dict[str, Versioned] = store.load_states([name], batches.BUNDLE)
    store.commit(batches.process(list(events), states))


def state(name: str, minutes: int, version: str, **fields: object) -> bytes:
    at = f"2026-03-03T09:{minutes:02}:00+00:00"
    return batches.consent(session_id=name, version=version, occurred_at=at, **fields)


def test_only_sessions_whose_latest_consent_states_the_purpose_permit_it(store: Store) -> None:
    for name in ("turn-only", "agreed", "withdrawn", "newer", "refused"):
        commit(store, name, batches.turn(0, session_id=name))
    for name in ("agreed", "withdrawn", "newer"):
        commit(store, name, state(name, 1, "v1", **AGREED))
    commit(store, "withdrawn", state("withdrawn", 2, "v1", status="withdrawn"))
    commit(store, "newer", state("newer", 2, "v2", status="given"))
    commit(store, "refused", state("refused", 1, "v1", status="refused"))
    assert consents.permitting(store, PURPOSE) == ["agreed"]
    found = consents.of_session(store, ALL_SESSIONS, "agreed")
    assert found is not None
    assert [record.purposes for record in found.records] == [[], [PURPOSE]]


def test_a_record_without_effect_permits_nothing(store: Store) -> None:
    """A withdrawal is final for the same wording, whatever a later record states."""
    commit(store, "s", batches.turn(0, session_id="s"))
    commit(store, "s", state("s", 1, "v1", status="withdrawn"))
    commit(store, "s", state("s", 2, "v1", **AGREED))
    assert consents.permitting(store, PURPOSE) == []


def test_an_ended_session_permits_it_as_well(store: Store) -> None:
    commit(store, "s", batches.turn(0, session_id="s"), batches.end(session_id="s"))
    commit(store, "s", state("s", 1, "v1", **AGREED))
    assert consents.permitting(store, PURPOSE) == ["s"]
