"""No free text of an event is stored unmasked: the test finds the fields in the schemas."""

from typing import Any

import msgspec
import pytest
from msgspec import inspect

from stream_app.contracts.events import Consent, Outcome, Questionnaire, SessionEnd, Turn
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from tests.store import batches
from tests.store.reading import contents

TOLD = "Sarah Connor, 07700 900123, hung up"
UNSTORED = frozenset({"addressee"})  # known only as a digest
NAMES = {
    "session_id",
    "turn_id",
    "outcome_id",
    "consent_id",
    "questionnaire_id",
    "speaker_id",
    "channel",
    "team",
    "lang",
    "version",
    "consent_version",
}
"""Identifiers and codes that producers choose; every other string is free text."""
NEEDED: dict[type[msgspec.Struct], bytes] = {
    Turn: batches.turn(),
    SessionEnd: batches.end(),
    Outcome: batches.outcome(),
    Consent: batches.consent(),
    Questionnaire: batches.questionnaire(),
}


def is_text(kind: inspect.Type) -> bool:
    """Whether a value of this type may be a string of any characters."""
    if isinstance(kind, inspect.UnionType):
        return any(map(is_text, kind.types))
    if isinstance(kind, inspect.Metadata):
        return is_text(kind.type)
    return isinstance(kind, inspect.StrType)


def free_texts(event: type[msgspec.Struct]) -> list[str]:
    """The fields of an event with free text."""
    found = inspect.type_info(event)
    assert isinstance(found, inspect.StructType)
    return [f.name for f in found.fields if is_text(f.type) and f.name not in NAMES]


FIELDS = [(event, field) for event in NEEDED for field in free_texts(event)]


def test_every_kind_of_event_is_walked() -> None:
    assert {(event.__name__, field) for event, field in FIELDS} >= {
        ("Turn", "text"),
        ("SessionEnd", "reason"),
        ("Consent", "source"),
    }


@pytest.mark.parametrize(("event", "field"), FIELDS)
def test_free_text_of_events_is_stored_masked(
    store: Store, event: type[msgspec.Struct], field: str
) -> None:
    told: dict[str, Any] = {**msgspec.json.decode(NEEDED[event]), field: TOLD}
    values = [batches.turn(), batches.turn(1)] if event is not Turn else []
    batch = batches.process([*values, msgspec.json.encode(told)])
    store.commit(batch)
    stored = contents(store)
    del stored[tables.session_states.name]
    states = store.load_states(["s"], batches.BUNDLE)
    everything = repr(stored) + repr(states["s"].state)
    if field not in UNSTORED:
        assert "•" in everything
    assert "Connor" not in everything
    assert "900123" not in everything
