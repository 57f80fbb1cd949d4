"""Invariants of a session for any arrival of its turns: out of order, late, after its end."""

import itertools
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, Stage
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.environment import Policy
from stream_app.core.session.session_state import SessionState, Versioned, pack, unpack
from tests.fakes import START, FakeScorer, end, outcome, received, turn
from tests.rule_texts import ALL, EAGER

PIPELINE = Pipeline(FakeScorer(), Policy(WindowPolicy(), ALL))
QUICK = settings(deadline=None)


def at(seconds: int) -> str:
    return (START + timedelta(seconds=seconds)).isoformat()


def processed(log: list[bytes]) -> BatchResult:
    return PIPELINE.process(received(log), {})


@st.composite
def turns(draw: st.DrawFn) -> list[bytes]:
    """Any roles and pauses; any order of arrival, or a delayed run of turns."""
    count = draw(st.integers(1, 18))
    first, last, delivered_at = (draw(st.integers(0, count)) for _ in range(3))
    lost = list(range(first, last))
    others = [seq for seq in range(count) if seq not in lost]
    order = [*others[:delivered_at], *lost, *others[delivered_at:]]
    if draw(st.booleans()):
        order = draw(st.permutations(order))
    return [
        turn(
            seq=seq,
            role=draw(st.sampled_from(["client", "counsellor", "counsellor"])),
            occurred_at=at(draw(st.integers(0, 90))),
        )
        for seq in order
    ]


@st.composite
def logs(draw: st.DrawFn) -> list[bytes]:
    """The same with an end, outcomes, duplicates and changing consent."""
    log = draw(turns())
    log += draw(st.lists(st.sampled_from([*log, outcome(), outcome(value=4.0)]), max_size=6))
    log += draw(
        st.lists(st.builds(turn, seq=st.integers(0, 25), consent=st.booleans()), max_size=3)
    )
    log.insert(draw(st.integers(0, len(log))), end())
    return log


@QUICK
@given(turns())
def test_every_turn_is_counted_and_scored_final_exactly_once(log: list[bytes]) -> None:
    """Including many turns that fill a gap after it was given up."""
    result = processed([*log, end()])
    finals = [score.seq for score in result.turn_scores if score.stage is Stage.FINAL]
    firsts = [score.seq for score in result.turn_scores if score.stage is Stage.PROVISIONAL]
    late = [stored.turn.seq for stored in result.turns if stored.late]
    assert sorted(finals) == sorted(firsts + late) == list(range(len(log)))
    [session] = result.session_scores
    roles = [stored.turn.speaker_role for stored in result.turns]
    assert session.turns == len(log)
    assert session.counsellor_turns == roles.count(Role.COUNSELLOR)
    assert session.late_turns == len(late)


@QUICK
@given(turns())
def test_the_mean_is_over_the_expected_levels_of_the_final_rows(log: list[bytes]) -> None:
    result = processed([*log, end()])
    [session] = result.session_scores
    turns = [
        [score.expressed.levels[name].probabilities for name in MECHANISMS]
        for score in result.turn_scores
        if score.stage is Stage.FINAL and score.role is Role.COUNSELLOR
    ]
    if not turns:
        assert session.empathy_total_mean is None
        assert session.mechanisms == {}
        return
    totals = [sum(weak + 2 * strong for _, weak, strong in turn) for turn in turns]
    assert session.empathy_total_mean == pytest.approx(sum(totals) / len(turns))
    for place, name in enumerate(MECHANISMS):
        shown = [1.0 - turn[place][0] for turn in turns]
        assert session.mechanisms[name].share == pytest.approx(sum(shown) / len(turns))


def test_late_turns_do_not_evict_a_turn_without_its_final_score() -> None:
    """
    ::

        0  .  .  .  .  .  6  7   then 1 2 3 4 5 late, then 8 completes 0
    """
    log = [turn(seq=seq, role="client", occurred_at=at(40 * seq)) for seq in (6, 7)]
    log += [turn(seq=seq, role="counsellor", occurred_at=at(seq)) for seq in range(1, 6)]
    log += [turn(seq=8, role="counsellor", occurred_at=at(400))]
    result = processed([turn(seq=0, role="counsellor"), *log])
    assert result.counts["late"] == 5
    assert result.session_scores[0].counsellor_turns == 7


def cut(log: list[bytes], cuts: list[int]) -> tuple[SessionState, dict[Any, Any]]:
    """State and rows after the log in batches that end at ``cuts``; states are serialised."""
    edges = sorted({0, len(log), *(place % (len(log) + 1) for place in cuts)})
    events = received(log)
    rows: dict[Any, Any] = {}
    stored: dict[str, bytes] = {}
    for start, stop in itertools.pairwise(edges):
        result = PIPELINE.process(
            events[start:stop], {key: Versioned(unpack(raw)) for key, raw in stored.items()}
        )
        stored |= {key: pack(versioned.state) for key, versioned in result.sessions.items()}
        rows |= {(s.seq, s.stage): s for s in result.turn_scores}
        rows |= {alert.alert_id: alert for alert in result.alerts}
        rows |= {aside.letter.offset: aside.letter for aside in result.dead_letters}
        rows |= {(o.kind, o.value): o for o in result.outcomes}
        for session in result.session_scores:
            rows["session"] = msgspec.structs.replace(session, risk_by_turn=[])
    return unpack(stored["s"]), rows


@QUICK
@given(logs(), st.lists(st.integers(0, 40), max_size=6))
def test_the_state_does_not_depend_on_the_batches(log: list[bytes], cuts: list[int]) -> None:
    whole_state, whole_rows = cut(log, [])
    state, rows = cut(log, cuts)
    assert pack(state) == pack(whole_state)
    assert rows == whole_rows


@QUICK
@given(turns(), st.integers(0, 40))
def test_rereading_does_not_change_the_state(log: list[bytes], back: int) -> None:
    once = PIPELINE.process(received(log), {})
    before = pack(once.sessions["s"].state)
    states = {"s": Versioned(unpack(before))}
    again = PIPELINE.process(received(log)[max(0, len(log) - back) :], states)
    assert pack(states["s"].state) == before
    assert again.turns == again.turn_scores == again.alerts == again.dead_letters == []


@QUICK
@given(turns())
def test_an_idle_flush_changes_neither_state_nor_later_final_scores(log: list[bytes]) -> None:
    states: dict[str, Versioned] = {}
    flushed: dict[Any, Any] = {}
    for event in received([*log, end()]):
        for result in (PIPELINE.process([event], states), PIPELINE.flush_idle(states)):
            flushed |= {(s.seq, s.stage): s for s in result.turn_scores}
    undisturbed = processed([*log, end()])
    assert pack(states["s"].state) == pack(undisturbed.sessions["s"].state)
    assert flushed == {(s.seq, s.stage): s for s in undisturbed.turn_scores}


@given(st.text(alphabet="quixotic zebra", min_size=12, max_size=60).filter(str.strip))
def test_a_stored_state_contains_no_text(text: str) -> None:
    state = processed([turn(text=text), turn(seq=2, text=text)]).sessions["s"].state
    assert text.encode() not in pack(state)
    assert unpack(pack(state)) == state


def test_a_session_keeps_its_partition() -> None:
    states: dict[str, Versioned] = {}
    event = received([turn()])[0]
    moved = msgspec.structs.replace(
        event, source=msgspec.structs.replace(event.source, partition=5)
    )
    PIPELINE.process([moved], states)
    assert states["s"].partition == 5


def test_a_long_session_has_the_same_risks_in_one_batch_and_in_many() -> None:
    """Its answers repeat, and its first ones are forgotten before the one batch is scored."""
    log = [
        turn(seq=seq, role=("client", "counsellor")[seq % 2], text=f"words {seq % 4}")
        for seq in range(150)
    ]
    whole_state, whole_rows = cut(log, [])
    state, rows = cut(log, list(range(len(log))))
    assert pack(state) == pack(whole_state)
    assert rows == whole_rows


def test_an_idle_flush_raises_no_alert_for_a_waiting_turn() -> None:
    """The alert fires when the turn is in order, or at the end; idle checks may be repeated."""
    pipeline = Pipeline(FakeScorer(), Policy(WindowPolicy(), EAGER))
    states: dict[str, Versioned] = {}
    pipeline.process(received([turn(seq=0), turn(seq=3)]), states)
    flushed = pipeline.flush_idle(states)
    assert flushed.session_scores[0].low_empathy_risk is not None
    assert flushed.alerts == []
    assert len(pipeline.process(received([end()], first_offset=2), states).alerts) == 3


def test_start_and_last_activity_do_not_depend_on_the_order_of_turns() -> None:
    result = processed([turn(seq=seq, occurred_at=at(10 * seq)) for seq in (1, 2, 0)])
    [session] = result.session_scores
    assert session.started_at == START
    assert session.last_activity_at == START + timedelta(seconds=20)


def test_facts_of_a_session_come_from_the_turns_that_state_them() -> None:
    log = [turn(seq=0), turn(seq=1, domain="peer-support", team="t"), turn(seq=2, channel="chat")]
    state = processed([*log, turn(seq=3, team="t", lang="en")]).sessions["s"].state
    assert (state.domain, state.team, state.channel, state.lang) == (
        "peer-support",
        "t",
        "chat",
        "en",
    )


@pytest.mark.parametrize("name", ["team", "domain", "channel"])
def test_a_turn_that_contradicts_its_session_is_refused(name: str) -> None:
    known = {"team": "north", "domain": "counselling", "channel": "chat"}
    other = {"team": "south", "domain": "peer-support", "channel": "voice"}[name]
    result = processed([turn(**known), turn(seq=1, **{name: other}), turn(seq=1)])
    [aside] = result.dead_letters
    assert aside.letter.reason == "contradicts-session"
    assert name in aside.letter.detail
    assert other not in aside.letter.detail
    assert [stored.turn.seq for stored in result.turns] == [0, 1]
    state = result.sessions["s"].state
    assert (state.team, state.domain, state.channel) == tuple(known.values())
