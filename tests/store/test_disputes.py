"""Counsellors dispute, supervisors decide, and the score never changes."""

from dataclasses import replace

import pytest
import sqlalchemy as sa

from stream_app.contracts.scores import MECHANISMS
from stream_app.store.database import tables
from stream_app.store.sessions.scored_turns import InvalidJudgement, NotFound, StateConflict
from stream_app.store.stream.repository import Store
from stream_app.store.work import disputes
from stream_app.store.work.disputes import Decision, DisputeCount
from tests.store.batches import BUNDLE
from tests.store.judging import counsellor, fill, supervisor
from tests.store.reading import rows

ER = MECHANISMS[0]


def level(store: Store, seq: int = 1) -> int:
    """The model's value."""
    return next(
        row[ER]
        for row in rows(store, tables.turn_scores)
        if (row["session_id"], row["seq"], row["stage"]) == ("north-0", seq, "final")
    )


def another(value: int) -> int:
    return (value + 1) % 3


def test_disputes_and_decisions_do_not_change_the_score(store: Store) -> None:
    fill(store)
    before = rows(store, tables.turn_scores)
    noor, sue = counsellor(store), supervisor(store)
    said = level(store)
    made = disputes.contest(store, noor, "north-0", 1, ER, another(said), "I named what I felt")
    assert (made.value, made.proposed, made.bundle) == (said, another(said), BUNDLE)
    assert disputes.find(store, sue.scope, waiting=True) == [made]
    answered = disputes.decide(store, sue, made.dispute_id, Decision.UPHELD, "So you did.")
    assert (answered.decision, answered.decided_by) == (Decision.UPHELD, "sue")
    assert disputes.find(store, noor.scope, person="noor") == [answered]
    assert disputes.find(store, sue.scope, waiting=True) == []
    assert disputes.counts(store, BUNDLE) == [DisputeCount(ER, 0, 1, 0)]
    assert rows(store, tables.turn_scores) == before


def test_a_score_is_disputed_once_and_answered_once(store: Store) -> None:
    fill(store)
    noor, sue = counsellor(store), supervisor(store)
    made = disputes.contest(store, noor, "north-0", 1, ER, None, "why")
    with pytest.raises(StateConflict, match="already"):
        disputes.contest(store, noor, "north-0", 1, ER, None, "again")
    disputes.decide(store, sue, made.dispute_id, Decision.REJECTED, "no")
    with pytest.raises(StateConflict, match="already"):
        disputes.decide(store, sue, made.dispute_id, Decision.UPHELD, "yes")
    assert disputes.counts(store, BUNDLE) == [DisputeCount(ER, 0, 0, 1)]


def test_only_scores_of_own_turns_can_be_disputed(store: Store) -> None:
    fill(store)
    noor, sue = counsellor(store), supervisor(store)
    with pytest.raises(NotFound):
        disputes.contest(store, noor, "south-0", 1, ER, None, "not mine")
    with pytest.raises(InvalidJudgement, match="own turn"):
        disputes.contest(store, noor, "north-0", 0, ER, None, "the client's")
    with pytest.raises(InvalidJudgement, match="own turn"):
        disputes.contest(store, sue, "north-0", 1, ER, None, "not mine either")


def test_proposing_the_models_value_or_an_invalid_one_is_rejected(store: Store) -> None:
    fill(store)
    noor = counsellor(store)
    for proposed in (level(store), 3, -1):
        with pytest.raises(InvalidJudgement):
            disputes.contest(store, noor, "north-0", 1, ER, proposed, "hm")
    assert rows(store, tables.disputes) == []


def test_abstentions_cannot_be_disputed(store: Store) -> None:
    fill(store)
    with store.transaction() as connection:
        connection.execute(sa.update(tables.turn_scores).values(abstained=[ER]))
    with pytest.raises(InvalidJudgement, match="abstained"):
        disputes.contest(store, counsellor(store), "north-0", 1, ER, None, "hm")


def test_supervisors_of_other_teams_can_neither_read_nor_decide_disputes(store: Store) -> None:
    fill(store)
    made = disputes.contest(store, counsellor(store), "north-0", 1, ER, None, "why")
    sam = supervisor(store, "sam", "south")
    assert disputes.find(store, sam.scope) == []
    with pytest.raises(NotFound):
        disputes.decide(store, sam, made.dispute_id, Decision.REJECTED, "no")


def test_notes_and_answers_are_redacted(store: Store) -> None:
    fill(store)
    sue = supervisor(store)
    note = "write to joan@example.org"
    made = disputes.contest(store, counsellor(store), "north-0", 1, ER, None, note)
    disputes.decide(store, sue, made.dispute_id, Decision.REJECTED, note)
    assert "joan" not in repr(rows(store, tables.disputes))


def test_deciding_an_unknown_dispute_is_an_error(store: Store) -> None:
    nobody = replace(supervisor(store), name="sue")
    with pytest.raises(NotFound):
        disputes.decide(store, nobody, "x", Decision.UPHELD, "yes")
