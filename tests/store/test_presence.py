"""Presence is short-lived and shared by processes; pins belong to one person."""

from datetime import UTC, datetime, timedelta

import pytest

from stream_app.store.accounts import pins, presence
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.presence import REPORT_EVERY, VALID_FOR
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.database import tables
from stream_app.store.lifecycle import erasure
from stream_app.store.stream.repository import Store
from tests.store.batches import prepare, process, turn
from tests.store.reading import rows

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


def test_people_see_each_other_until_they_leave(store: Store) -> None:
    assert presence.report(store, "s", "sue", NOW) == []
    assert presence.report(store, "s", "nora", NOW) == ["sue"]
    assert presence.report(store, "other", "sam", NOW) == []
    assert presence.report(store, "s", "sue", NOW + REPORT_EVERY) == ["nora"]
    presence.leave(store, "s", "nora")
    assert presence.report(store, "s", "sue", NOW + REPORT_EVERY) == []


def test_a_page_that_is_silent_for_too_long_is_forgotten(store: Store) -> None:
    presence.report(store, "s", "sue", NOW)
    late = NOW + VALID_FOR + timedelta(seconds=1)
    assert presence.report(store, "s", "nora", late) == []
    assert [row["person"] for row in rows(store, tables.presence)] == ["nora"]


def test_pins_are_ones_own_and_the_oldest_give_way(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pins, "MOST", 2)
    for session in ("a", "b", "b", "c"):
        pins.pin(store, "sue", session)
    pins.pin(store, "nora", "a")
    assert pins.find(store, "sue") == {"b", "c"}
    pins.unpin(store, "sue", "c")
    assert (pins.find(store, "sue"), pins.find(store, "nora")) == ({"b"}, {"a"})


def test_an_erasure_and_the_end_of_an_account_remove_both(store: Store) -> None:
    prepare(store).commit(process([turn(session_id="s")]))
    people = People(store)
    for name in ("sue", "nora"):
        people.add(Person(name, PersonRole.SUPERVISOR, all_teams=True), None)
        pins.pin(store, name, "s")
        presence.report(store, "s", name, NOW)
    people.disable("nora")
    for table in (tables.pins, tables.presence):
        assert [row["person"] for row in rows(store, table)] == ["sue"]
    erasure.erase(store, ["s"], NOW)
    assert rows(store, tables.pins) == rows(store, tables.presence) == []
