"""Erasing sessions deletes all of their rows and no others."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from stream_app.core.session.ports import Message
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.database import tables
from stream_app.store.lifecycle import erasure, erasure_receipts
from stream_app.store.lifecycle.erasure_receipts import Lines
from stream_app.store.stream import outbox
from stream_app.store.stream.repository import Store
from tests.store import batches, judging
from tests.store.reading import contents, rows

NOW = datetime(2026, 1, 6, tzinfo=UTC)
LATER = NOW + timedelta(days=1)
GONE, OTHER = "north-0", "north-1"
FILLERS: dict[type, Any] = {str: "", int: 1, object: NOW, date: NOW.date(), dict: {}}
"""Example values by column type; ``object``: for times."""


def fill(store: Store) -> None:
    """Two sessions with a row in every table that can have one."""
    judging.fill(store, 2)
    states = store.load_states([GONE], batches.BUNDLE)
    store.commit(batches.process([batches.outcome(session_id=GONE)], states))
    with store.transaction() as connection:
        for name in (GONE, OTHER):
            for table in (
                tables.alert_actions,
                tables.interventions,
                tables.escalations,
                tables.mutes,
                tables.ratings,
                tables.rating_comments,
                tables.disputes,
                tables.reviews,
                tables.review_answers,
                tables.review_comments,
                tables.proposals,
                tables.questionnaires,
                tables.sample_turns,
                tables.session_assignments,
                tables.rollup_sessions,
                tables.rollup_turns,
                tables.pins,
                tables.presence,
                tables.archived_sessions,
                tables.session_numbers,
                tables.shadow_scores,
            ):
                connection.execute(sa.insert(table).values(_row(table, name)))
        for alert in connection.execute(sa.select(tables.alerts.c.alert_id)).scalars().all():
            told = {**_row(tables.deliveries, ""), "alert_id": alert}
            connection.execute(sa.insert(tables.deliveries).values(told))


def _row(table: sa.Table, session_id: str) -> dict[str, Any]:
    """A row with a value in every column."""
    row = {}
    for column in table.c:
        value = FILLERS[column.type.python_type]
        if value == "":
            value = f"{session_id} {table.name}"[: getattr(column.type, "length", None)]
        row[column.name] = value
    return row | ({"session_id": session_id} if "session_id" in table.c else {})


def of(found: dict[str, list[dict[str, Any]]], session_id: str) -> dict[str, int]:
    """Rows of a session, by table."""
    counts = {
        name: sum(row.get("session_id") == session_id for row in some)
        for name, some in found.items()
    }
    return {name: count for name, count in counts.items() if count}


def test_all_rows_of_an_erased_session_are_deleted_and_no_others(store: Store) -> None:
    fill(store)
    before = contents(store)
    held = of(before, GONE)
    assert held.keys() == {table.name for table in erasure.SESSION_TABLES}, (
        "the test covers all tables"
    )
    alerts = {row["alert_id"] for row in before["alerts"] if row["session_id"] == GONE}
    deliveries = sum(row["alert_id"] in alerts for row in before["deliveries"])
    assert deliveries

    assert erasure.count_stored(store, [GONE, "unknown"]) == erasure.StoredCounts(1, judging.TURNS)
    removed = erasure.erase(store, [GONE, "unknown"], NOW).removed

    assert removed == {**held, "deliveries": deliveries}
    for item in erasure_receipts.unfinished(store):
        erasure_receipts.finish(store, item.id, Lines([], []))
    after = contents(store)
    assert of(after, GONE) == {}
    assert GONE not in repr(after)
    for name, some in before.items():
        if name not in ("erasures", "erasure_receipts", "deliveries", "rollup_marks"):
            assert after[name] == [row for row in some if row.get("session_id") != GONE], name
    assert len(after["deliveries"]) == len(before["deliveries"]) - deliveries


def test_erased_sessions_are_recognised_by_a_keyed_digest(
    store: Store,
) -> None:
    fill(store)
    erasure.erase(store, [GONE], NOW)
    assert store.find_erased([GONE, OTHER]) == {GONE}
    assert store.find_erased([]) == set()
    [mark] = rows(store, tables.erasures)
    assert mark == {"digest": store.privacy.pseudonym(GONE), "at": NOW}
    assert not erasure.erase(store, [GONE], LATER).removed, "and once more is nothing"
    assert rows(store, tables.erasures) == [mark], "it was erased when it was erased first"


def test_the_audit_trail_is_kept(store: Store) -> None:
    fill(store)
    audit.record(store, "sue", AuditAction.READ_TRANSCRIPT, GONE)
    audit.record(store, "sue", AuditAction.READ_TRANSCRIPT, OTHER)
    before = rows(store, tables.audit)
    assert erasure.erase(store, [GONE], NOW).audited == 1
    assert rows(store, tables.audit) == before
    other, gone = audit.latest(store)
    assert other.session_id == OTHER
    assert gone.session_id == f"erased:{store.privacy.pseudonym(GONE)}"


def test_unpublished_messages_are_deleted(store: Store) -> None:
    gone, other = (Message("t", name.encode(), b"v") for name in (GONE, OTHER))
    mixed = store.commit(batches.process([]), [gone, other, gone])
    own = store.commit(batches.process([]), [gone])
    assert mixed is not None
    assert own is not None
    removed = erasure.erase(store, [GONE], NOW).removed
    assert removed == {"outbox": 3}
    [left] = rows(store, tables.outbox)
    assert left["id"] == mixed
    assert outbox.unpack(left["messages"]) == [other]


def test_a_second_erasure_leaves_the_notice_of_the_first(store: Store) -> None:
    judging.fill(store, 1)
    notices = [erasure.erase(store, [GONE], at, ["scores"]).outbox_ids for at in (NOW, LATER)]
    left = {row["id"]: outbox.unpack(row["messages"]) for row in rows(store, tables.outbox)}
    assert [left[one] for [one] in notices] == [[Message("scores", GONE.encode(), None)]] * 2


def test_a_receipt_is_finished_once_and_amended_only_then(store: Store) -> None:
    judging.fill(store, 1)
    [receipt] = erasure.erase(store, [GONE], NOW).receipts
    erasure_receipts.amend(store, receipt, Lines(["too early"], []))
    [found] = erasure_receipts.of_session(store, GONE)
    assert found.lines is None
    for done in ("first", "second"):
        erasure_receipts.finish(store, receipt, Lines([done], []))
    [found] = erasure_receipts.of_session(store, GONE)
    assert found.lines == Lines(["first"], [])
    erasure_receipts.amend(store, receipt, Lines(["third"], []))
    [found] = erasure_receipts.of_session(store, GONE)
    assert found.lines == Lines(["third"], [])


def test_a_sweep_of_the_archive_counts_for_erasures_before_it(store: Store) -> None:
    fill(store)
    erasure.erase(store, [GONE], NOW)
    for before, archived in ((NOW, True), (LATER, False)):
        erasure_receipts.note_swept(store, before)
        [waiting] = erasure_receipts.unfinished(store)
        assert waiting.archived is archived


def test_a_speakers_sessions_are_found_by_the_speaker_id_of_events(store: Store) -> None:
    judging.fill(store, 3)
    assert erasure.sessions_of(store, judging.NOOR) == ["north-0", "north-1", "north-2"]
    assert erasure.sessions_of(store, "client of south-1") == ["south-1"]
    assert erasure.sessions_of(store, store.privacy.pseudonym(judging.NOOR)) == []
    assert erasure.sessions_of(store, "nobody") == []


def test_erasing_a_speaker_deletes_their_baselines(store: Store) -> None:
    usual = {"bundle": "b", "measure": "m", "n": 20, "mean": 1.0, "sd": 1.0, "as_of": NOW}
    noor = store.privacy.pseudonym(judging.NOOR)
    kept = [("channel", noor), ("counsellor", store.privacy.pseudonym("olu@example.org"))]
    with store.transaction() as connection:
        for scope, key in [*kept, ("counsellor", noor)]:
            row = {**usual, "scope": scope, "key": key}
            connection.execute(sa.insert(tables.baselines).values(row))
    assert erasure.forget_counsellor(store, judging.NOOR) == {"baselines": 1}
    assert [(row["scope"], row["key"]) for row in rows(store, tables.baselines)] == kept
    assert not erasure.forget_counsellor(store, judging.NOOR)


def test_many_sessions_are_erased_in_batches(store: Store) -> None:
    names = [f"s{number}" for number in range(erasure.SESSIONS_PER_BATCH + 3)]
    store.commit(batches.process([batches.turn(session_id=name) for name in names]))
    removed = erasure.erase(store, names, NOW).removed
    assert removed["turns"] == len(names)
    assert rows(store, tables.sessions) == []
