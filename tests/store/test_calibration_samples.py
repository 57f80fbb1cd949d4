"""Calibration samples are stratified by level, reproducible, and rated blind."""

from collections import Counter

import pytest
import sqlalchemy as sa

from stream_app.contracts.scores import MECHANISMS
from stream_app.store.accounts.people import Person
from stream_app.store.database import tables
from stream_app.store.sessions.scored_turns import NotFound, StateConflict
from stream_app.store.stream.repository import Store
from stream_app.store.work import calibration_samples, ratings
from stream_app.store.work.agreement import rated_turns
from stream_app.store.work.calibration_samples import CalibrationSample, NewCalibrationSample
from stream_app.store.work.ratings import Judgement
from tests.store.batches import BUNDLE
from tests.store.judging import fill, supervisor
from tests.store.reading import rows


def draw(store: Store, who: Person, size: int = 6, seed: int = 7) -> CalibrationSample:
    return calibration_samples.draw(
        store, who, NewCalibrationSample("autumn", BUNDLE, who.team, size, seed)
    )


def places(store: Store, sample: CalibrationSample) -> list[tuple[str, int]]:
    return [
        (turn.session_id, turn.seq)
        for turn in calibration_samples.collect_ratings(store, sample).turns
    ]


def rate_all(
    store: Store, who: Person, sample: CalibrationSample, value: int = 1, leave: int = 0
) -> None:
    turns = calibration_samples.collect_ratings(store, sample).turns
    for turn in turns[: len(turns) - leave]:
        given = [Judgement(turn.session_id, turn.seq, name, value) for name in MECHANISMS]
        calibration_samples.rate(store, who, sample.sample_id, given)


def test_the_same_seed_draws_the_same_turns(store: Store) -> None:
    fill(store)
    sue = supervisor(store)
    first, again, other = draw(store, sue), draw(store, sue), draw(store, sue, seed=8)
    assert places(store, first) == places(store, again) != places(store, other)
    assert first.size == 6
    assert calibration_samples.find(store, sue.scope)[0] == other


def test_only_the_teams_counsellor_turns_are_drawn_each_once(store: Store) -> None:
    fill(store)
    drawn = places(store, draw(store, supervisor(store), size=300))
    assert len(drawn) == len(set(drawn)) == 18
    assert all(session.startswith("north") and seq % 2 == 1 for session, seq in drawn)


def test_rare_levels_are_drawn_as_often_as_frequent_ones(store: Store) -> None:
    fill(store, sessions=4)
    final = tables.turn_scores.c.stage == "final"
    counsellor = tables.turn_scores.c.role == "counsellor"
    nothing = dict.fromkeys(MECHANISMS, 0)
    with store.transaction() as connection:
        connection.execute(sa.update(tables.turn_scores).where(final, counsellor).values(nothing))
        rare = sa.update(tables.turn_scores).where(
            final,
            tables.turn_scores.c.session_id == "north-0",
            tables.turn_scores.c.seq.in_((1, 3)),
        )
        connection.execute(rare.values({MECHANISMS[0]: 2}))
    drawn = places(store, draw(store, supervisor(store), size=4))
    levels = Counter(session == "north-0" and seq in (1, 3) for session, seq in drawn)
    assert levels == {True: 2, False: 2}


def test_drawing_from_no_turns_is_an_error(store: Store) -> None:
    fill(store)
    sue = supervisor(store)
    with pytest.raises(StateConflict, match="no turns"):
        calibration_samples.draw(
            store, sue, NewCalibrationSample("t", "another-model", "north", 5, 1)
        )
    assert rows(store, tables.samples) == []


def test_a_sample_belongs_to_its_team(store: Store) -> None:
    fill(store)
    sample = draw(store, supervisor(store))
    sam, all_teams = supervisor(store, "sam", "south"), supervisor(store, "pat", None)
    assert calibration_samples.find(store, sam.scope) == []
    with pytest.raises(NotFound):
        calibration_samples.one(store, sam.scope, sample.sample_id)
    with pytest.raises(NotFound):
        rate_all(store, sam, sample)
    assert calibration_samples.one(store, all_teams.scope, sample.sample_id) == sample


def test_ratings_can_be_changed_until_the_last_turn_is_rated(store: Store) -> None:
    fill(store)
    sue = supervisor(store)
    sample = draw(store, sue)
    rate_all(store, sue, sample, 1, leave=1)
    rate_all(store, sue, sample, 2, leave=1)
    done = calibration_samples.collect_ratings(store, sample)
    assert (done.unrated("sue"), done.finished) == ([6], [])
    assert len(rows(store, tables.ratings)) == 15
    last = done.turns[-1]
    given = [Judgement(last.session_id, last.seq, name, 0) for name in MECHANISMS]
    calibration_samples.rate(store, sue, sample.sample_id, given)
    assert calibration_samples.collect_ratings(store, sample).finished == ["sue"]
    with pytest.raises(StateConflict, match="closed for you"):
        calibration_samples.rate(store, sue, sample.sample_id, given)


def test_only_turns_of_the_sample_can_be_rated(store: Store) -> None:
    fill(store)
    sue = supervisor(store)
    sample = draw(store, sue)
    drawn = places(store, sample)
    session, seq = next(
        (f"north-{n}", s)
        for n in range(3)
        for s in range(1, 12, 2)
        if (f"north-{n}", s) not in drawn
    )
    with pytest.raises(NotFound, match="not in the sample"):
        calibration_samples.rate(
            store, sue, sample.sample_id, [Judgement(session, seq, MECHANISMS[0], 1)]
        )


def test_blind_ratings_are_hidden_on_the_session_page_and_precede_open_ones(
    store: Store,
) -> None:
    fill(store)
    sue = supervisor(store)
    sample = draw(store, sue)
    session, seq = places(store, sample)[0]
    ratings.rate(store, sue.scope, "sue", [Judgement(session, seq, MECHANISMS[0], 2)])
    rate_all(store, sue, sample, 0)
    assert [r.value for r in ratings.of_session(store, sue, session)] == [2]
    [(_, pairs)] = rated_turns(store, BUNDLE, [MECHANISMS[0]]).items()
    assert {pair.people for pair in pairs} == {(0,)}
    assert all(pair.blind == 1 for pair in pairs)


def test_erased_turns_need_no_rating(store: Store) -> None:
    fill(store)
    sue = supervisor(store)
    sample = draw(store, sue)
    rate_all(store, sue, sample, leave=1)
    session, seq = places(store, sample)[-1]
    with store.transaction() as connection:
        connection.execute(
            sa.update(tables.turns)
            .where(tables.turns.c.session_id == session, tables.turns.c.seq == seq)
            .values(text=None)
        )
    done = calibration_samples.collect_ratings(store, sample)
    assert [turn.erased for turn in done.turns] == [False] * 5 + [True]
    assert done.finished == ["sue"]


def test_model_levels_leave_out_abstentions(store: Store) -> None:
    fill(store)
    sample = draw(store, supervisor(store))
    with store.transaction() as connection:
        connection.execute(sa.update(tables.turn_scores).values(abstained=[MECHANISMS[1]]))
    said = calibration_samples.model_levels(store, sample)
    assert sorted(said) == [1, 2, 3, 4, 5, 6]
    assert all(set(by) == {MECHANISMS[0], MECHANISMS[2]} for by in said.values())
