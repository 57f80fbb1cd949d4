"""Results of batches: consent, duplicates, ends, outcomes, dead letters, idle sessions."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from stream_app.contracts.scores import AlertState, SessionStatus, Stage
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.rules.rules import RuleSet
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.environment import Policy
from stream_app.core.session.ports import Encoding
from stream_app.core.session.session_state import SessionState, Versioned, pack, unpack
from tests.fakes import (
    START,
    FakeScorer,
    consent,
    end,
    outcome,
    questionnaire,
    received,
    turn,
)
from tests.rule_texts import EAGER, SHIPPED, rule_text, rules_of


def pipeline(**changes: object) -> Pipeline:
    policy = {"window": WindowPolicy(), **changes}
    return Pipeline(FakeScorer(), Policy(**policy))


def processed(log: list[bytes], **changes: object) -> BatchResult:
    return pipeline(**changes).process(received(log), {})


def final_rows(result: BatchResult) -> list[int]:
    return sorted(s.seq for s in result.turn_scores if s.stage is Stage.FINAL)


def test_each_turn_gets_a_provisional_and_a_final_score() -> None:
    result = processed([turn(seq=n) for n in range(6)] + [end()])
    keys = [(score.seq, score.stage) for score in result.turn_scores]
    assert len(keys) == len(set(keys)) == 12
    [session] = result.session_scores
    assert (session.status, session.turns, session.counsellor_turns) == (
        SessionStatus.CLOSED,
        6,
        3,
    )


def test_a_final_score_sees_more_than_the_provisional_one() -> None:
    result = processed([turn(seq=n) for n in range(5)])
    by_stage = {s.stage: s for s in result.turn_scores if s.seq == 1}
    assert by_stage[Stage.FINAL].expressed != by_stage[Stage.PROVISIONAL].expressed


def test_the_risk_is_on_the_first_score_of_a_counsellor_turn() -> None:
    result = processed([turn(seq=n) for n in range(6)])
    with_risk = {(s.seq, s.stage) for s in result.turn_scores if s.low_empathy_risk is not None}
    assert with_risk == {(n, Stage.PROVISIONAL) for n in (1, 3, 5)}
    assert [seq for seq, _ in result.session_scores[0].risk_by_turn] == [1, 3, 5]


def test_the_end_computes_the_risk_from_final_scores_and_keeps_the_curve() -> None:
    log = [turn(seq=n) for n in range(6)]
    running, ended = processed(log), processed([*log, end()])
    [before], [after] = (result.session_scores for result in (running, ended))
    assert after.risk_by_turn == before.risk_by_turn
    assert before.low_empathy_risk == before.risk_by_turn[-1][1]
    assert after.low_empathy_risk not in (None, before.low_empathy_risk)


def test_outcome_risks_need_a_domain_with_a_model() -> None:
    log = [turn(seq=n, domain="peer-support") for n in range(6)]
    [known], [unknown] = (
        processed(events).session_scores for events in (log, [turn(seq=n) for n in range(6)])
    )
    assert known.outcome_risks.keys() == {"chat_failed"}
    assert unknown.outcome_risks == {}
    [ended] = processed([*log, end()]).session_scores
    assert ended.outcome_risks != known.outcome_risks


def test_a_late_turn_of_an_ended_session_updates_outcomes_and_no_exchange() -> None:
    log = [turn(seq=n, domain="peer-support") for n in (0, 1, 3, 4, 5)]
    states: dict[str, Versioned] = {}
    worker = pipeline()
    [before] = worker.process(received([*log, end()]), states).session_scores
    exchanges = unpack(pack(states["s"].state)).exchanges
    late = turn(seq=2, text="late and long enough to count")
    [after] = worker.process(received([late], first_offset=6), states).session_scores
    assert after.late_turns == 1
    assert states["s"].state.exchanges == exchanges
    assert (after.empathy_index, after.low_empathy_risk) == (
        before.empathy_index,
        before.low_empathy_risk,
    )
    assert after.outcome_risks != before.outcome_risks
    assert processed([*log, end(), late]).session_scores[0].outcome_risks == after.outcome_risks


def test_a_rationale_is_shown_only_where_the_level_is_above_none() -> None:
    result = processed([turn(seq=n) for n in range(20)])
    levels = [level for s in result.turn_scores if (level := s.expressed.level("explorations"))]
    assert {level.level for level in levels} == {0, 1, 2}
    assert all(bool(level.rationale) is (level.level > 0) for level in levels)


def test_without_consent_turns_are_only_counted() -> None:
    result = processed([turn(seq=0, consent=None), turn(seq=1, consent=None), outcome(), end()])
    assert result.turns == result.turn_scores == result.outcomes == []
    assert result.session_scores[0].withheld_turns == 2
    assert result.counts["withheld"] == 3
    assert b"I say" not in pack(result.sessions["s"].state)


def test_a_batch_is_encoded_in_one_call_without_withheld_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[list[str]] = []
    encode = FakeScorer.encode

    def encoded(scorer: FakeScorer, texts: list[str], roles: object = None) -> list[Encoding]:
        calls.append(texts)
        return encode(scorer, texts)

    monkeypatch.setattr(FakeScorer, "encode", encoded)
    log = [
        turn(seq=0, text="one"),
        turn("t", seq=0, text="two"),
        turn(seq=0, text="one"),
        turn(seq=1, text="withdrawn", consent=False),
        turn(seq=2, text="withheld", consent=None),
    ]
    processed(log)
    assert calls == [["one", "two"]]


def test_consent_is_valid_from_the_turn_that_gives_it_until_withdrawn() -> None:
    consents = [None, True, None, None, False, None]
    result = processed([turn(seq=n, consent=c) for n, c in enumerate(consents)] + [end()])
    assert [stored.turn.seq for stored in result.turns] == [1, 2, 3]
    assert final_rows(result) == [1, 2, 3]
    assert result.session_scores[0].withheld_turns == 3


def test_assumed_consent_does_not_override_a_refusal() -> None:
    log = [turn("a", consent=None), turn("b", consent=False)]
    result = processed(log, require_consent=False)
    assert [stored.turn.session_id for stored in result.turns] == ["a"]


def test_a_repeated_turn_does_not_restore_withdrawn_consent() -> None:
    result = processed(
        [turn(seq=0), turn(seq=1, consent=False), turn(seq=0), turn(seq=2, consent=None)]
    )
    assert [stored.turn.seq for stored in result.turns] == [0]


SILENCE = rules_of(rule_text("silence", when="waiting && waiting_distress >= 0.0", for_="90s"))


@pytest.mark.parametrize(("rules", "ends"), [(SILENCE, "inactive"), (EAGER, "resolved")])
def test_a_late_turn_that_withdraws_the_consent_ends_alerts(rules: RuleSet, ends: str) -> None:
    states: dict[str, Versioned] = {}
    worker = pipeline(rules=rules, window=WindowPolicy(reorder_turns=1))
    log = [*(turn(seq=seq) for seq in (0, 1, 3, 4)), turn(seq=5, role="client")]
    worker.process(received(log), states)
    late = worker.process(received([turn(seq=2, consent=False)], first_offset=5), states)
    assert late.counts == {"withheld": 1}
    [alert] = late.alerts
    assert (alert.state.value, "consent" in alert.reason) == (ends, True)
    assert worker.fire_due(states, START + timedelta(hours=1)).alerts == []
    again = worker.process(received([turn(seq=6)], first_offset=6), states)
    assert again.alerts == []


def test_a_session_of_which_only_consent_is_known_has_a_score() -> None:
    [session] = processed([consent("given")]).session_scores
    assert (session.status, session.turns) == (SessionStatus.OPEN, 0)


def test_a_dead_letter_has_the_bytes_and_the_offset() -> None:
    result = pipeline().process(received([turn(), b"{", turn(seq=1)], first_offset=7), {})
    [aside] = result.dead_letters
    assert aside.raw == b"{"
    assert (aside.letter.topic, aside.letter.partition, aside.letter.offset) == ("turns", 0, 8)
    assert (aside.letter.reason, aside.letter.size) == ("not-json", 1)
    assert [stored.turn.seq for stored in result.turns] == [0, 1]


def test_records_at_one_offset_that_were_sent_a_moment_apart_have_letters_of_their_own() -> None:
    """Offsets begin again when a topic is recreated."""
    [refused] = received([b"{"])
    at = datetime(2026, 1, 5, tzinfo=UTC)
    times = (None, at, at + timedelta(milliseconds=1))
    batches = [[structs.replace(refused, produced_at=time)] for time in times]
    found = [pipeline().process(batch, {}).dead_letters for batch in [*batches, *batches]]
    ids = [letter.letter.dead_letter_id for [letter] in found]
    assert len(set(ids)) == 3
    assert ids[:3] == ids[3:], "and the same letter when it is read again"


def test_a_conflicting_duplicate_is_dead_lettered_and_the_first_is_kept() -> None:
    result = processed([turn(), turn(text="Something else.")])
    assert [a.letter.reason for a in result.dead_letters] == ["conflicting-duplicate"]
    assert [stored.turn.text for stored in result.turns] == ["I say this at 0 in s."]


def test_after_the_end_only_duplicates_and_late_turns_are_accepted() -> None:
    new = turn(seq=3, occurred_at="2026-01-05T11:00:01Z")
    log = [turn(seq=0), turn(seq=2), end(), turn(seq=0), turn(seq=1), new, end()]
    result = processed(log)
    assert [a.letter.reason for a in result.dead_letters] == ["after-end"]
    assert [(stored.turn.seq, stored.late) for stored in result.turns] == [
        (0, False),
        (2, False),
        (1, True),
    ]
    assert final_rows(result) == [0, 1, 2]
    assert result.counts["duplicate"] == 2


def test_an_end_before_the_first_turn_does_not_close_the_session() -> None:
    log = [turn(seq=n) for n in range(6)]
    for early in ([end()], [end(occurred_at="2026-01-01T00:00:00Z"), end()]):
        result = processed([*early, *log])
        assert result.dead_letters == []
        assert result.turn_scores == processed(log).turn_scores
        [session] = result.session_scores
        assert (session.status, session.turns) == (SessionStatus.OPEN, 6)


def test_an_early_end_that_is_read_again_still_has_no_effect() -> None:
    early = end(occurred_at="2026-01-01T00:00:00Z")
    result = processed([early, turn(), early, turn(seq=1), end()])
    assert result.dead_letters == []
    assert (result.counts["early-end"], result.counts["duplicate"]) == (1, 1)
    assert [session.status for session in result.session_scores] == [SessionStatus.CLOSED]


def test_crisis_language_alerts_whatever_an_end_has_overtaken() -> None:
    log = [turn(seq=n, role="client", text="I want to kill myself.") for n in range(4)]
    for place in range(5):
        result = processed([*log[:place], end(), *log[place:]], rules=SHIPPED)
        assert result.dead_letters == []
        firing = {alert.rule for alert in result.alerts if alert.state is AlertState.FIRING}
        assert "crisis-language" in firing, place
        assert [stored.turn.seq for stored in result.turns] == [0, 1, 2, 3]


@pytest.mark.parametrize("places", [1, 2, 3])
def test_turns_that_an_end_overtook_are_scored_and_the_session_ends(places: int) -> None:
    log = [turn(seq=n) for n in range(6)]
    result = processed([*log[:-places], end(), *log[-places:]])
    assert result.dead_letters == []
    assert final_rows(result)[-1] == 5
    scored = {(s.seq, s.stage) for s in result.turn_scores}
    assert scored == {(n, stage) for n in range(6) for stage in Stage}
    [session] = result.session_scores
    assert (session.status, session.turns) == (SessionStatus.CLOSED, 6)
    assert session.counsellor_turns == 3


def test_an_alert_of_the_turn_that_an_end_overtook_is_raised_and_resolved() -> None:
    result = processed([turn(seq=0), end(), turn(seq=1)], rules=EAGER)
    assert [alert.state for alert in result.alerts] == [
        alert.state for alert in processed([turn(seq=0), turn(seq=1), end()], rules=EAGER).alerts
    ]


def test_a_session_that_an_earlier_release_closed_before_its_first_turn_goes_on() -> None:
    states = {"s": Versioned(SessionState("s", FakeScorer().bundle_id, closed=True))}
    states["s"].state.ended_at = datetime(2026, 1, 1, tzinfo=UTC)
    result = pipeline().process(received([turn(seq=n) for n in range(4)]), states)
    assert result.dead_letters == []
    assert [session.status for session in result.session_scores] == [SessionStatus.OPEN]


def test_turns_after_the_end_of_a_session_without_a_scored_turn_are_counted() -> None:
    late = turn(seq=1, occurred_at="2026-01-05T11:00:01Z")
    unheard = processed([turn(consent=None), end(), late, late])
    assert unheard.counts["unheard"] == 2
    assert processed([turn(), end(), late]).counts["unheard"] == 0


def test_an_ended_session_raises_no_alert() -> None:
    log = [turn(seq=0), turn(seq=2), end(), turn(seq=1)]
    assert processed(log, rules=EAGER).alerts == []


def test_an_alert_that_fires_is_resolved_by_the_end() -> None:
    result = processed([turn(seq=0), turn(seq=1), end()], rules=EAGER)
    assert [alert.state for alert in result.alerts] == [
        AlertState.PENDING,
        AlertState.FIRING,
        AlertState.RESOLVED,
    ]


def test_outcomes_are_stored_with_consent_and_only_counted_without() -> None:
    named = ("s", "unknown")
    result = processed([turn(), *map(outcome, named), *map(questionnaire, named)])
    assert [o.session_id for o in result.outcomes] == ["s"]
    assert [q.session_id for q in result.questionnaires] == ["s"]
    assert result.counts["withheld"] == 2


def test_flushing_an_idle_session_does_not_change_its_state() -> None:
    states: dict[str, Versioned] = {}
    worker = pipeline()
    worker.process(received([turn(seq=n) for n in (0, 1, 3)]), states)
    before = pack(states["s"].state)
    flushed = worker.flush_idle(states)
    assert pack(states["s"].state) == before
    assert final_rows(flushed) == [0, 1, 3]
    assert flushed.session_scores[0].status is SessionStatus.IDLE
    assert flushed.session_scores[0].turns == 3
    assert flushed.alerts == []


def test_an_idle_flush_does_not_affect_the_rest_of_a_session() -> None:
    first, second = [turn(seq=n) for n in (0, 1, 3)], [turn(seq=2), turn(seq=4), end()]
    undisturbed = rows(processed(first + second))
    states: dict[str, Versioned] = {}
    worker = pipeline()
    found = rows(worker.process(received(first), states))
    found |= rows(worker.flush_idle(states))
    states = {key: Versioned(unpack(pack(value.state))) for key, value in states.items()}
    found |= rows(worker.process(received(second), states))
    assert found == undisturbed


def rows(result: BatchResult) -> dict[object, object]:
    found: dict[object, object] = {(s.seq, s.stage): s for s in result.turn_scores}
    return found | {"counsellor_turns": result.session_scores[0].counsellor_turns}


REFUSED = [
    turn(seq=1, text=""),
    turn(seq=1, role="zanzibar"),
    turn(seq=1, text="\u0000"),
    turn(seq=1, occurred_at="soon"),
    turn(seq=1, text="x" * 70_000),
    turn(seq=1, text="half").replace(b"half", rb"\ud83d"),
    turn(seq=1, text="half").replace(b"half", b"caf\xe9"),
    turn(seq=1)[:-1] + b',"audio":"x"}',
]


@pytest.mark.parametrize("refused", REFUSED)
def test_turns_after_a_refused_one_are_scored_at_once(refused: bytes) -> None:
    result = processed([turn(seq=0), refused, turn(seq=2), turn(seq=3)])
    assert {score.seq for score in result.turn_scores} == {0, 2, 3}
    assert result.counts["dead-letter"] == 1
    waiting = processed([turn(seq=0), turn(seq=2), turn(seq=3), refused])
    assert {score.seq for score in waiting.turn_scores} == {0, 2, 3}


def test_the_first_turn_may_be_refused_and_sent_again() -> None:
    states: dict[str, Versioned] = {}
    worker = pipeline()
    worker.process(received([turn(seq=0, text=" ")]), states)
    assert unpack(pack(states["s"].state)) == states["s"].state
    later = worker.process(received([turn(seq=1)], first_offset=1), states)
    assert [score.seq for score in later.turn_scores] == [1]
    mended = worker.process(received([turn(seq=0)], first_offset=2), states)
    assert [stored.late for stored in mended.turns] == [True]


def test_a_turn_that_contradicts_its_session_leaves_no_gap() -> None:
    log = [turn(seq=0, team="north"), turn(seq=1, team="south"), turn(seq=2)]
    result = processed(log)
    assert [item.letter.reason for item in result.dead_letters] == ["contradicts-session"]
    assert {score.seq for score in result.turn_scores} == {0, 2}


@pytest.mark.parametrize(
    "refused",
    [b"{", b"[]", b'{"type":"turn","session_id":"s"}', turn(seq=-1), turn(session_id="s" * 201)],
)
def test_what_names_no_place_changes_no_session(refused: bytes) -> None:
    result = processed([refused])
    assert (result.counts, result.sessions) == ({"dead-letter": 1}, {})


def test_a_turn_that_was_said_when_the_session_ended_belongs_to_it() -> None:
    result = processed([turn(seq=0), end(), turn(seq=1, occurred_at="2026-01-05T11:00:00Z")])
    assert result.dead_letters == []
    assert [stored.turn.seq for stored in result.turns] == [0, 1]


def test_a_turn_that_was_refused_after_the_end_is_not_late_once_it_is_mended() -> None:
    result = processed([turn(seq=0), end(), turn(seq=1, text=""), turn(seq=1)])
    assert [(stored.turn.seq, stored.late) for stored in result.turns] == [(0, False), (1, False)]


def test_an_ended_session_waits_for_nobody() -> None:
    result = processed([turn(seq=0), end(), turn(seq=1, text="")])
    assert result.counts["dead-letter"] == 1
    [session] = result.session_scores
    assert session.status is SessionStatus.CLOSED
