"""Edits and deletions of turns: what the database keeps, and what a crash changes."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.database import tables
from stream_app.store.lifecycle import holds
from stream_app.store.stream.repository import Store
from stream_app.worker.batches.commits import Committed
from stream_app.worker.batches.processor import BatchProcessor
from tests.store.batches import consent, end, prepare, turn
from tests.store.reading import contents, dump, rows, stored_rows
from tests.worker.processors import processor, records

Open = Callable[..., Store]
LOG = [turn(seq) for seq in range(12)]
TOLD = "My name is Sarah Connor and I meant something else."
SCORED = (tables.turn_scores, tables.session_scores)


def revision(kind: str, seq: int, **changes: Any) -> bytes:
    event = {"type": kind, "session_id": "s", "occurred_at": "2026-01-05T10:30:00Z"}
    return json.dumps({**event, "seq": seq, **changes}).encode()


def edit(seq: int, text: str = TOLD, **changes: Any) -> bytes:
    return revision("turn_edit", seq, text=text, **changes)


def delete(seq: int, **changes: Any) -> bytes:
    return revision("turn_delete", seq, **changes)


def unmasked(open_prepared: Open) -> tuple[Store, Store]:
    one, other = (prepare(open_prepared(name), redact=False) for name in ("one", "other"))
    return one, other


def take(worker: BatchProcessor, values: Sequence[bytes]) -> list[Committed]:
    return worker.handle_in_parts(worker.prepare(records(values)))


def scored(store: Store) -> list[Any]:
    found = [row for table in SCORED for row in rows(store, table)]
    return [{k: v for k, v in row.items() if not k.startswith("started")} for row in found]


@pytest.mark.parametrize("seq", [11, 2])
def test_an_edited_session_has_the_rows_of_one_that_was_sent_so(
    open_prepared: Open, seq: int
) -> None:
    edited, plain = unmasked(open_prepared)
    take(processor(edited), [*LOG, edit(seq), turn(12), end()])
    log = [*LOG, turn(12), end()]
    log[seq] = turn(seq, text=TOLD)
    take(processor(plain), log)
    assert scored(edited) == scored(plain)
    texts = [[row["text"] for row in rows(store, tables.turns)] for store in (edited, plain)]
    assert texts[0] == texts[1]
    assert texts[0][seq] == TOLD


@pytest.mark.parametrize("seq", [11, 2])
def test_a_deleted_turn_leaves_nothing_but_its_number(open_prepared: Open, seq: int) -> None:
    deleted, plain = unmasked(open_prepared)
    log = [*LOG]
    log[seq] = turn(seq, text="I regret this sentence.")
    take(processor(deleted), [*log, delete(seq), turn(12), end()])
    log[seq] = turn(seq, text="")
    take(processor(plain), [*log, turn(12), end()])
    assert scored(deleted) == scored(plain)
    assert "regret" not in dump(deleted)
    assert seq not in {row["seq"] for row in rows(deleted, tables.turns)}
    assert len(rows(deleted, tables.window_turns)) == len(rows(plain, tables.window_turns))
    [entry] = audit.latest(deleted, "s")
    assert (entry.person, entry.action) == (audit.WORKER, AuditAction.ERASE.value)
    assert f"turn {seq}" in (entry.detail or "")
    assert take(processor(deleted), [log[seq - 1], turn(seq)])[0].result.counts["duplicate"] == 2


def test_a_new_text_is_masked_and_encrypted(open_prepared: Open) -> None:
    store = open_prepared()
    take(processor(store), [*LOG, edit(10)])
    [row] = [row for row in rows(store, tables.turns) if row["seq"] == 10]
    assert "Connor" not in repr(contents(store)[tables.turns.name])
    assert "something else" in row["text"]
    assert "something else" not in repr(stored_rows(store, tables.turns))


def test_a_part_of_the_log_that_is_read_again_changes_no_row(open_prepared: Open) -> None:
    log = [*LOG, edit(9), turn(12), edit(9, "No, this.", occurred_at="2026-01-05T10:31:00Z")]
    log += [delete(3), turn(13), end(), edit(12)]
    once, again = unmasked(open_prepared)
    take(processor(once), log)
    take(processor(again), log[:17])
    take(processor(again), log[5:])  # another worker, after a crash
    assert scored(again) == scored(once)
    assert len(audit.latest(again, "s")) == 1


def test_consumers_get_the_scores_that_have_changed(open_prepared: Open) -> None:
    worker = processor(open_prepared())
    take(worker, LOG)
    [committed] = take(worker, [delete(8)])
    seqs = {score.seq for score in committed.result.turn_scores}
    assert {5, 6, 7, 9, 10, 11} <= seqs
    assert 8 not in seqs
    assert committed.messages


def test_a_session_on_hold_keeps_its_turns(open_prepared: Open) -> None:
    store = open_prepared()
    worker = processor(store)
    take(worker, LOG)
    holds.add(store, "s", "a complaint", "anna", store.clock())
    before = scored(store)
    found = take(worker, [delete(8), edit(7)])
    reasons = [item.letter.reason for one in found for item in one.result.dead_letters]
    assert reasons == ["legal-hold", "legal-hold"]
    assert scored(store) == before


def test_an_edit_of_a_withdrawn_session_without_state_is_kept_nowhere(open_prepared: Open) -> None:
    store = open_prepared()
    take(processor(store), [*LOG, consent("withdrawn")])
    with store.transaction() as connection:
        connection.execute(tables.session_states.delete())
    [found] = take(processor(store), [edit(7)])
    assert found.result.counts == {"withheld": 1}
    assert "something else" not in dump(store)


def test_a_deletion_reaches_a_session_whose_state_has_expired(open_prepared: Open) -> None:
    store = open_prepared()
    take(processor(store), LOG)
    with store.transaction() as connection:
        connection.execute(tables.session_states.delete())
    found = take(processor(store), [delete(8), edit(7)])
    assert [one.result.counts for one in found] == [{"deleted": 1}, {"dead-letter": 1}]
    assert 8 not in {row["seq"] for row in rows(store, tables.turns)}
    assert 8 not in {row["seq"] for row in rows(store, tables.turn_scores)}
