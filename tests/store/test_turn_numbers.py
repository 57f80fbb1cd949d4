"""Numbers of turns from several web processes, and idempotency keys, on both databases."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from stream_app.contracts.numbering import MAX_SEQ
from stream_app.store.database import tables
from stream_app.store.lifecycle import erasure, retention
from stream_app.store.stream import ingest_keys, turn_numbers
from stream_app.store.stream.ingest_keys import KeyBusy, KeyReused, Request
from stream_app.store.stream.repository import Store
from stream_app.store.stream.turn_numbers import (
    BY_GATEWAY,
    BY_PRODUCER,
    ERASED,
    NO_NUMBER_LEFT,
    TAKEN,
    Numbered,
    SentTurn,
    numbered_by_producers,
)
from tests.store.batches import process, turn
from tests.store.reading import rows

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
ME, OTHER = (turn_numbers.owner_of(name, []) for name in ("me", "other"))


def assign(store: Store, *sent: tuple[str, int | None], sender: str = ME) -> list[int | str | None]:
    """Numbers, or the codes of refusals."""
    turns = [SentTurn(*each) for each in sent]
    with store.transaction() as connection:
        found = turn_numbers.assign(store, connection, turns, NOW, sender)
    return [each.refusal or each.seq for each in found]


def test_turns_are_numbered_by_session_in_the_order_of_arrival(store: Store, other: Store) -> None:
    assert assign(store, ("a", None), ("b", None), ("a", None)) == [0, 0, 1]
    assert assign(other, ("b", None), ("a", None)) == [1, 2]
    assert assign(store) == []


def test_web_processes_never_give_out_the_same_number(store: Store, other: Store) -> None:
    """Sessions in opposite orders would deadlock if they were locked in these orders."""
    found: dict[str, list[int]] = {"a": [], "b": []}

    def take(one: Store, names: tuple[str, str]) -> None:
        for _ in range(25):
            numbers = assign(one, *((name, None) for name in names))
            for name, seq in zip(names, numbers, strict=True):
                assert isinstance(seq, int)
                found[name].append(seq)

    threads = [
        threading.Thread(target=take, args=(store, ("a", "b"))),
        threading.Thread(target=take, args=(other, ("b", "a"))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for numbers in found.values():
        assert sorted(numbers) == list(range(50))


def test_a_session_has_numbers_of_its_producer_or_of_the_gateway(store: Store) -> None:
    assert assign(store, ("own", 4), ("own", None), ("own", 5)) == [4, BY_PRODUCER, 5]
    assert assign(store, ("ours", None), ("ours", 1)) == [0, BY_GATEWAY]
    store.commit(process([turn(session_id="on the topic")]))
    assert assign(store, ("on the topic", None), ("on the topic", 1)) == [BY_PRODUCER, 1]
    of_producers = [SentTurn("own", 6), SentTurn("on the topic", 2)]
    assert numbered_by_producers(store, of_producers, ME)
    assert numbered_by_producers(store, [], ME)
    for sent in (SentTurn("own", None), SentTurn("ours", 1), SentTurn("new", 0)):
        assert not numbered_by_producers(store, [*of_producers, sent], ME)


def test_numbers_continue_after_the_stored_turns_of_a_restored_database(store: Store) -> None:
    assert assign(store, ("s", None)) == [0]
    store.commit(process([turn(seq) for seq in range(4)]))
    assert assign(store, ("s", None)) == [4]


def test_the_last_number_is_given_out_once(store: Store) -> None:
    assert assign(store, ("s", None)) == [0]
    with store.transaction() as connection:
        connection.execute(sa.update(tables.session_numbers).values(next_seq=MAX_SEQ))
    assert assign(store, ("s", None), ("s", None)) == [MAX_SEQ, NO_NUMBER_LEFT]


def test_unused_numbers_are_given_back_unless_others_follow(store: Store) -> None:
    assert assign(store, *[("s", None)] * 4) == [0, 1, 2, 3]
    turn_numbers.give_back(store, [("s", 2), ("s", 3)])
    assert assign(store, ("s", None)) == [2]
    turn_numbers.give_back(store, [("s", 1)])
    assert assign(store, ("s", None)) == [3]


REQUEST = Request("key", "body")
RESULTS = [{"index": 0, "accepted": False, "seq": 7}]


def found(store: Store, request: Request = REQUEST, **later: float) -> ingest_keys.Known | None:
    with store.transaction() as connection:
        known = ingest_keys.find(store, connection, request, NOW + timedelta(**later))
        if known is None:
            ingest_keys.plan(connection, request, RESULTS)
        return known


def test_a_request_is_in_progress_until_it_is_answered_or_released(
    store: Store, other: Store
) -> None:
    assert found(store) is None
    with pytest.raises(KeyBusy) as busy:
        found(other, seconds=5)
    assert busy.value.wait == pytest.approx(ingest_keys.BUSY_FOR.total_seconds() - 5)
    with pytest.raises(KeyReused):
        found(other, Request("key", "another body"))
    ingest_keys.release(store, REQUEST)
    assert found(other) == ingest_keys.Known(RESULTS, answered=False)
    with pytest.raises(KeyBusy):
        found(store)
    final = [{"index": 0, "accepted": True, "seq": 7}]
    ingest_keys.answer(other, REQUEST, final)
    assert found(store) == ingest_keys.Known(final, answered=True)


def test_the_request_of_a_process_that_died_is_taken_over(store: Store, other: Store) -> None:
    assert found(store) is None
    died = ingest_keys.BUSY_FOR.total_seconds()
    assert found(other, seconds=died) == ingest_keys.Known(RESULTS, answered=False)
    with pytest.raises(KeyBusy):
        found(store, seconds=died)


def test_of_two_concurrent_requests_with_one_key_one_is_new(store: Store, other: Store) -> None:
    seen: list[object] = []
    barrier = threading.Barrier(2)

    def ask(one: Store) -> None:
        barrier.wait()
        try:
            seen.append(found(one))
        except KeyBusy:
            seen.append("busy")

    threads = [threading.Thread(target=ask, args=(one,)) for one in (store, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, seen)) == ["None", "busy"]


def test_keys_expire_after_a_day_and_numbers_with_their_session(store: Store) -> None:
    later = NOW + timedelta(days=400)
    found(store)
    assign(store, ("s", None), ("never stored", None))
    store.commit(process([turn()]))
    list(retention.purge(store, NOW, NOW, NOW + ingest_keys.KEEP_FOR))
    assert len(rows(store, tables.ingest_keys)) == 1
    list(retention.purge(store, NOW, NOW + timedelta(seconds=1), later))
    assert rows(store, tables.ingest_keys) == []
    assert [row["session_id"] for row in rows(store, tables.session_numbers)] == ["s"]
    erasure.erase(store, ["s"], later)
    assert rows(store, tables.session_numbers) == []
    assert assign(store, ("s", None), ("s", 7)) == [ERASED, 7]
    assert rows(store, tables.session_numbers) == [], "an erased id is not stored again"


def test_a_refused_turn_takes_no_number(store: Store) -> None:
    with store.transaction() as connection:
        sent = [SentTurn("s", None), SentTurn("s", 9), SentTurn("s", None)]
        numbered = turn_numbers.assign(store, connection, sent, NOW, ME)
    assert numbered == [Numbered(0), Numbered(None, BY_GATEWAY), Numbered(1)]


def test_a_session_belongs_to_who_began_it(store: Store) -> None:
    assert assign(store, ("numbered", 0), ("counted", None)) == [0, 0]
    for seq in (1, None):
        assert assign(store, ("numbered", seq), ("counted", seq), sender=OTHER) == [TAKEN, TAKEN]
    assert not numbered_by_producers(store, [SentTurn("numbered", 1)], OTHER)
    assert assign(store, ("numbered", 1), ("counted", None)) == [1, 1], "no number was taken"
    assert turn_numbers.owners(store, ["numbered", "counted", "unknown"]) == {
        "numbered": ME,
        "counted": ME,
    }


def test_a_session_that_began_on_the_topic_belongs_to_nobody(store: Store) -> None:
    store.commit(process([turn(session_id="on the topic")]))
    assert assign(store, ("on the topic", 1)) == [1]
    assert assign(store, ("on the topic", 2), sender=OTHER) == [2]


def test_limits_of_a_token_are_a_part_of_the_owner() -> None:
    assert turn_numbers.owner_of("pump", [("team", "north")]) != turn_numbers.owner_of("pump", [])
