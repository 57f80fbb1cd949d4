"""Edits and deletions leave the rows of a session that had its turns so from the start."""

import itertools
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from stream_app.contracts.events import Role
from stream_app.contracts.scores import AlertState, Stage
from stream_app.core.measures.crisis import LISTED
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline import revision
from stream_app.core.pipeline.pipeline import Pipeline, Received, Source, parts
from stream_app.core.pipeline.scoring_bundles import BundlesInForce
from stream_app.core.rules.rules import NO_RULES, RuleSet
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.environment import Policy
from stream_app.core.session.past import PastSession, PastTurn
from stream_app.core.session.session_state import SessionState, Versioned, pack, unpack
from tests.fakes import FakeScorer, consent, delete, edit, end, received, turn
from tests.rule_texts import ALL, risk_rules

Rows = dict[Any, Any]
RELAXED = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
START = datetime(2026, 1, 1, tzinfo=UTC)


class Memory:
    """What a store keeps: rows by key, and states as bytes."""

    def __init__(self, rules: RuleSet = NO_RULES) -> None:
        self.pipeline = Pipeline(FakeScorer(), Policy(WindowPolicy(), rules))
        self.rows: Rows = {}
        self.texts: dict[tuple[str, int], PastTurn] = {}
        self.states: dict[str, bytes] = {}
        self.held = False
        self.letters: list[str] = []
        self.fates: list[str] = []
        self.alerts: list[tuple[str, AlertState]] = []

    def run(self, log: Sequence[bytes], cuts: Sequence[int] = ()) -> "Memory":
        """Process a log in batches that end at ``cuts``, and flush what is open."""
        self.take(received(list(log)), cuts)
        open_states = {key: Versioned(unpack(raw)) for key, raw in self.states.items()}
        idle = {key: known for key, known in open_states.items() if not known.state.closed}
        self._store(self.pipeline.flush_idle(idle))
        return self

    def take(self, log: list[Received], cuts: Sequence[int] = ()) -> "Memory":
        edges = sorted({0, len(log), *(cut % (len(log) + 1) for cut in cuts)})
        for start, stop in itertools.pairwise(edges):
            for part in parts(log[start:stop]):
                states = {key: Versioned(unpack(raw)) for key, raw in self.states.items()}
                names = {one.session_id for one in part}
                past = {name: self.past(name) for name in names if name is not None}
                self._store(self.pipeline.process(part, states, past))
        return self

    def state(self, name: str = "s") -> SessionState:
        return unpack(self.states[name])

    def past(self, name: str) -> PastSession:
        return PastSession(
            [one for key, one in sorted(self.texts.items()) if key[0] == name],
            [row for key, row in self.rows.items() if key[:2] == ("score", name)],
            self.held,
        )

    def score(self, seq: int, stage: Stage = Stage.FINAL) -> Any:
        return self.rows.get(("score", "s", seq, stage))

    def _store(self, result: BatchResult) -> None:
        for stored in result.turns:
            one = stored.turn
            self.texts[one.session_id, one.seq] = PastTurn(
                one.seq,
                one.speaker_role,
                one.text,
                one.occurred_at,
                None,
                stored.late,
                START + timedelta(seconds=len(self.texts)),
                stored.unscored,
                one.turn_id,
                one.speaker_id,
            )
        if (revised := result.revised) is not None:
            key = revised.session_id, revised.seq
            if revised.text is None:
                del self.texts[key]
            else:
                self.texts[key] = structs.replace(self.texts[key], text=revised.text)
            for seq, stage in revised.stale:
                self.rows.pop(("score", revised.session_id, seq, stage), None)
        for score in result.turn_scores:
            self.rows["score", score.session_id, score.seq, score.stage] = score
        for session in result.session_scores:
            row = structs.replace(session, risk_by_turn=[])
            self.rows["session", session.session_id] = row
        self.states |= {key: pack(v.state) for key, v in result.sessions.items()}
        self.letters += [item.letter.reason for item in result.dead_letters]
        self.fates += [*result.counts]
        self.alerts += [(alert.rule, alert.state) for alert in result.alerts]


@st.composite
def revised_sessions(draw: st.DrawFn) -> tuple[list[bytes], list[bytes]]:
    """A log with edits and deletions, and the log of a session that was so from the start."""
    size = draw(st.integers(1, 14))
    texts: dict[int, str | None] = {seq: f"I say this at {seq}." for seq in range(size)}
    holes = draw(st.sets(st.integers(0, 13), max_size=2))
    log = [turn(seq=seq, text="" if seq in holes else texts[seq]) for seq in range(size)]
    closed = draw(st.booleans())
    if closed:
        log.append(end())
    for number in range(draw(st.integers(1, 4))):
        seq = draw(st.integers(0, size - 1))
        if seq in holes or texts[seq] is None:
            continue
        at = (START + timedelta(days=30, minutes=number)).isoformat()
        first = next(i for i, raw in enumerate(log) if json.loads(raw).get("seq") == seq) + 1
        latest = max(
            (i + 1 for i, raw in enumerate(log) if json.loads(raw).get("seq") == seq), default=first
        )
        texts[seq] = draw(st.sampled_from([None, f"I mean {number}.", "I want to kill myself."]))
        text = texts[seq]
        change = delete(seq=seq, occurred_at=at)
        if text is not None:
            change = edit(seq=seq, text=text, occurred_at=at)
        log.insert(draw(st.integers(latest, len(log))), change)
    plain = [turn(seq=q, text="" if q in holes or not texts[q] else texts[q]) for q in range(size)]
    return log, [*plain, end()] if closed else plain


@RELAXED
@given(revised_sessions(), st.lists(st.integers(0, 40), max_size=6))
def test_the_rows_are_those_of_a_session_that_was_so_from_the_start(
    logs: tuple[list[bytes], list[bytes]], cuts: list[int]
) -> None:
    log, plain = logs
    wanted, found = Memory().run(plain), Memory().run(log, cuts)
    if wanted.rows.keys() <= {("session", "s")}:
        assert found.rows.keys() <= {("session", "s")}  # without a turn it still has begun
        return
    assert found.rows.keys() == wanted.rows.keys()
    for key, row in wanted.rows.items():
        if key[0] == "session":  # the times of deleted turns were the session's
            times = {"started_at": None, "last_activity_at": None}
            assert structs.replace(found.rows[key], **times) == structs.replace(row, **times)
        else:
            assert found.rows[key] == row, key


@RELAXED
@given(revised_sessions(), st.lists(st.integers(0, 40), max_size=4), st.integers(0, 40))
def test_rereading_a_part_of_the_log_changes_no_row(
    logs: tuple[list[bytes], list[bytes]], cuts: list[int], back: int
) -> None:
    """As if a worker died between commit and acknowledgement."""
    log, _ = logs
    again = Memory(ALL)
    stop = back % (len(log) + 1)
    again.take(received(log[:stop]))
    again.take(received(log[stop // 2 :]), cuts)
    assert again.run([]).rows == Memory(ALL).run(log).rows


def revised(*more: bytes, size: int = 8, rules: RuleSet = NO_RULES) -> Memory:
    """A session of some turns, then what follows, without a flush."""
    return Memory(rules).take(received([*(turn(seq=seq) for seq in range(size)), *more]))


def at(minute: int) -> str:
    return (START + timedelta(days=30, minutes=minute)).isoformat()


def test_the_same_edit_twice_is_one() -> None:
    found = revised(edit(seq=5), edit(seq=5))
    assert found.fates[-2:] == ["edited", "duplicate"]


def test_an_edit_of_an_edit_holds_and_an_older_one_does_not() -> None:
    first = edit(seq=5, text="First.", occurred_at=at(1))
    second = edit(seq=5, text="Second.", occurred_at=at(2))
    found = revised(first, second, first)
    assert found.fates[-3:] == ["edited", "edited", "duplicate"]
    assert found.texts["s", 5].text == "Second."


def test_of_two_edits_at_the_same_time_the_second_holds() -> None:
    found = revised(*(edit(seq=5, text=text, occurred_at=at(1)) for text in ("One.", "Two.")))
    assert found.fates[-2:] == ["edited", "edited"]
    assert found.texts["s", 5].text == "Two."


def test_a_turn_in_a_gap_may_still_be_deleted_before_it_comes() -> None:
    """Nobody waits for the gap any more, but its turns may come late."""
    found = Memory().take(received([turn(seq=0), *(turn(seq=seq) for seq in range(3, 30))]))
    assert found.state().window.gaps == [(1, 2)]
    found.take(received([delete(seq=1), delete(seq=2), turn(seq=1), turn(seq=2)]))
    assert found.fates[-3:] == ["early-delete", "early-delete", "duplicate"]


def test_a_deleted_turn_without_a_score_is_not_counted() -> None:
    memory = Memory()
    default = structs.replace(memory.pipeline.bundles.default, languages=("en",))
    memory.pipeline.adopt(BundlesInForce(default))
    log = [turn(seq=0), turn(seq=1, lang="fr"), turn(seq=2)]
    found = memory.take(received([*log, delete(seq=1), delete(seq=2)]))
    assert found.state().unscored_turns == 0


def test_crisis_language_at_the_threshold_counts_in_an_edit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(revision, "THRESHOLD", LISTED)
    found = revised(edit(seq=4, text="I want to kill myself."), rules=ALL)
    assert ("brief-crisis", AlertState.FIRING) in found.alerts


def test_an_edit_of_an_ended_session_raises_no_alert() -> None:
    ended = revised(end(), rules=ALL)
    change = edit(seq=4, text="I want to kill myself.")
    assert revised(end(), change, rules=ALL).alerts == ended.alerts


def test_an_edit_is_no_turn_of_the_counsellor() -> None:
    rules = risk_rules(0.0, 0.0, turns=2)
    pending = [("low-empathy-risk", AlertState.PENDING)]
    assert revised(edit(seq=0), edit(seq=1), size=2, rules=rules).alerts == pending


def test_the_clock_does_not_go_back_with_a_deletion() -> None:
    found = revised(delete(seq=7), rules=ALL)
    assert found.state().watch.clock == revised(rules=ALL).state().watch.clock


def test_the_first_words_of_an_edited_turn_are_known_under_its_id() -> None:
    """A producer that did not see the edit sends the turn again, with another number."""
    sent = json.loads(turn(seq=2, turn_id="m-2"))
    log = [turn(seq=0), turn(seq=1), json.dumps(sent).encode(), edit(seq=2)]
    found = Memory().take(received([*log, json.dumps(sent | {"seq": 3}).encode()]))
    assert found.fates[-2:] == ["edited", "repeated"]
    assert not found.letters


def test_an_edited_turn_that_is_sent_again_is_a_duplicate() -> None:
    found = revised(edit(seq=5), turn(seq=5), turn(seq=5, text="I mean this at 5."))
    assert found.fates[-2:] == ["edited", "duplicate"]
    assert not found.letters


def test_a_deleted_turn_stays_deleted() -> None:
    found = revised(delete(seq=5), turn(seq=5), edit(seq=5), delete(seq=5), turn(seq=8))
    assert found.fates[-5:] == ["deleted", "duplicate", "dead-letter", "duplicate", "accepted"]
    assert found.letters == ["turn-deleted"]
    assert ("s", 5) not in found.texts
    assert found.state().window.next_seq == 9  # no gap opened


def test_a_turn_that_was_deleted_before_it_came_is_not_taken() -> None:
    ahead = [delete(seq=8), delete(seq=None, turn_id="m")]
    found = revised(*ahead, *ahead, edit(seq=8), edit(seq=None, turn_id="m"))
    assert found.fates[-6:] == [*["early-delete"] * 2, *["duplicate"] * 2, *["dead-letter"] * 2]
    assert found.letters == ["turn-deleted"] * 2
    found.take(received([turn(seq=8), turn(seq=9, turn_id="m"), turn(seq=10)]))
    assert [seq for _, seq in found.texts] == [*range(8), 10]
    assert found.score(10, Stage.PROVISIONAL) is not None  # nobody waits


@pytest.mark.parametrize("event", [edit(seq=9), edit(session="other"), delete("no")])
def test_revisions_of_unknown_turns_are_refused(event: bytes) -> None:
    found = revised(event)
    assert found.letters == ["unknown-turn"]
    assert found.states.keys() == {"s"}


def test_a_turn_that_waits_for_another_can_be_edited_and_deleted() -> None:
    waiting = [turn(seq=seq) for seq in (0, 2, 3)]
    found = Memory().take(received([*waiting, edit(seq=3), delete(seq=2), turn(seq=1)]))
    assert found.fates[-3:] == ["edited", "deleted", "accepted"]
    found.run([])
    plain = [turn(seq=0), turn(seq=1), turn(seq=2, text=""), turn(seq=3, text="I mean this at 3.")]
    wanted = Memory().run(plain)
    assert {k: v for k, v in found.rows.items() if k[0] == "score"} == {
        k: v for k, v in wanted.rows.items() if k[0] == "score"
    }


def test_a_revised_session_is_noted_under_the_partition_of_the_revision() -> None:
    """After the topic was given more partitions, the next worker finds it there."""
    pipeline = Pipeline(FakeScorer(), Policy(WindowPolicy(), NO_RULES))
    for event in (edit(seq=0), delete(seq=0), delete(seq=1)):
        states: dict[str, Versioned] = {}
        pipeline.process(received([turn(seq=0)]), states)
        said = PastTurn(0, Role.CLIENT, "I say this at 0 in s.", START, None, False, START)
        past = {"s": PastSession([said], [])}
        [moved] = received([event])
        moved = structs.replace(moved, source=Source("turns", 7, 1))
        result = pipeline.process([moved], states, past)
        assert not result.dead_letters
        assert states["s"].partition == result.sessions["s"].partition == 7


def test_an_ended_session_is_revised_and_stays_ended() -> None:
    found = revised(end(), edit(seq=3), delete(seq=6))
    assert found.fates[-2:] == ["edited", "deleted"]
    assert found.state().closed
    assert found.rows["session", "s"].turns == 7


def test_a_turn_is_named_by_its_id() -> None:
    log = [turn(seq=seq, turn_id=f"m-{seq}") for seq in range(4)]
    named = {"seq": None, "turn_id": "m-2"}
    found = Memory().take(received([*log, edit(text="New.", **named), delete(**named)]))
    assert found.fates[-2:] == ["edited", "deleted"]
    other = Memory().take(received([*log, delete(seq=1, turn_id="m-2")]))
    assert other.letters == ["unknown-turn"]


def test_without_consent_an_edit_is_not_kept_and_a_deletion_still_erases() -> None:
    found = revised(consent("withdrawn"), edit(seq=3), delete(seq=4))
    assert found.fates[-2:] == ["withheld", "deleted"]
    assert not found.letters
    withheld = Memory().take(received([turn(seq=0, consent=False), edit(seq=0), delete(seq=0)]))
    assert withheld.fates[-2:] == ["withheld", "duplicate"]
    assert not withheld.letters


def test_a_session_on_hold_refuses_both() -> None:
    found = revised()
    found.held = True
    found.take(received([edit(seq=3), delete(seq=3)]))
    assert found.letters == ["legal-hold", "legal-hold"]


def test_crisis_language_in_a_new_text_raises_the_alert() -> None:
    found = revised(edit(seq=4, text="I want to kill myself."), rules=ALL)
    raised = {rule for rule, state in found.alerts if state is AlertState.FIRING}
    before = {rule for rule, _ in revised(rules=ALL).alerts}
    assert {rule for rule in raised - before if "crisis" in rule}


def test_an_expired_text_cannot_be_edited_but_deleted() -> None:
    found = revised()
    for key, kept in found.texts.items():
        found.texts[key] = structs.replace(kept, text=None)
    found.take(received([edit(seq=1), delete(seq=1)]))
    assert found.letters == ["too-late"]
    assert found.fates[-1] == "deleted"
    assert found.score(1) is None


def test_a_turn_sent_twice_with_other_numbers_is_taken_once() -> None:
    sent = turn(seq=2, turn_id="m-2")
    log = [turn(seq=0), turn(seq=1), sent, turn(seq=3, turn_id="m-2", role="client")]
    again = json.loads(sent) | {"seq": 3}
    log[-1] = json.dumps(again).encode()
    found = Memory().take(received([*log, turn(seq=4), log[-1]]))
    assert found.fates == ["accepted", "repeated"]
    assert [seq for _, seq in found.texts] == [0, 1, 2, 4]
    assert found.score(4, Stage.PROVISIONAL) is not None  # nobody waits for 3
    found.take(received([delete(seq=None, turn_id="m-2")]))
    found.take(received([json.dumps(again | {"seq": 5}).encode(), turn(seq=6)]))
    assert found.fates[-3:] == ["deleted", "repeated", "accepted"]
    assert ("s", 5) not in found.texts
    assert found.score(6, Stage.PROVISIONAL) is not None


def test_an_id_belongs_to_one_turn() -> None:
    log = [turn(seq=0, turn_id="m"), turn(seq=1, turn_id="m"), turn(seq=2)]
    found = Memory().take(received(log))
    assert found.letters == ["turn-id-taken"]
    assert found.score(2, Stage.PROVISIONAL) is not None


def test_an_edit_by_id_of_a_deleted_turn_says_so() -> None:
    log = [turn(seq=0), turn(seq=1, turn_id="m"), delete(seq=1)]
    found = Memory().take(received([*log, edit(seq=None, turn_id="m")]))
    assert found.letters == ["turn-deleted"]
