"""Batches, interleaving, duplicates and rereading of a log do not change the stored rows."""

import itertools
import json
import random
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from stream_app.contracts.events import Role, SessionEnd, Turn
from stream_app.core.measures.intents import Hits, IntentSet
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline, Received
from stream_app.core.pipeline.scoring_bundles import BundlesInForce
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.environment import Policy
from stream_app.core.session.session_state import Versioned, pack, unpack
from tests.fakes import FakeScorer, ReadByFirstWord, end, one, outcome, turn
from tests.rule_texts import ALL

PIPELINE = Pipeline(FakeScorer(), Policy(WindowPolicy(), ALL))
PIPELINE.adopt(BundlesInForce(structs.replace(PIPELINE.bundles.default, languages=("en",))))
PIPELINE.languages = ReadByFirstWord()


class IntentsByHash:
    """Intents that depend on the text alone."""

    intents = IntentSet()

    def hits(self, vectors: Sequence[bytes], roles: Sequence[Role]) -> list[Hits]:
        return [{"odd": vector[0] / 255} if vector[0] % 2 else {} for vector in vectors]


PIPELINE.encodings.intent_reader = IntentsByHash()
TEXTS = {
    "cry": "I want to kill myself.",
    "foreign": "Hola no puedo dormir",
    "short": "ok",
    "mixed": "Hola I want to kill myself",
}
BOUND = WindowPolicy().reorder_turns
RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Database:
    """Upserts by key, as the store does; states are serialised."""

    def __init__(self) -> None:
        self.rows: dict[Any, Any] = {}
        self.states: dict[str, bytes] = {}

    def run(self, log: list[Received], cuts: list[int]) -> None:
        """Process a log in batches that end at ``cuts``."""
        edges = sorted({0, len(log), *(cut % (len(log) + 1) for cut in cuts)})
        for start, stop in itertools.pairwise(edges):
            states = {key: Versioned(unpack(raw)) for key, raw in self.states.items()}
            self.store(PIPELINE.process(log[start:stop], states))

    def flush_idle(self) -> "Database":
        """Flush all open sessions."""
        states = {key: Versioned(unpack(raw)) for key, raw in self.states.items()}
        self.store(PIPELINE.flush_idle({k: v for k, v in states.items() if not v.state.closed}))
        return self

    def store(self, result: BatchResult) -> None:
        for s in result.turn_scores:
            self.rows["score", s.session_id, s.seq, s.stage] = s
        for s in result.session_scores:
            self.rows["session", s.session_id] = msgspec.structs.replace(s, risk_by_turn=[])
        for alert in result.alerts:
            self.rows.setdefault(("alert", alert.alert_id), alert)
        for stored in result.turns:
            self.rows.setdefault(("turn", stored.turn.session_id, stored.turn.seq), stored.turn)
        for o in result.outcomes:
            self.rows["outcome", o.session_id, o.occurred_at] = o
        for key, versioned in result.sessions.items():
            self.states[key] = pack(versioned.state)


CHANGES: dict[str, dict[str, Any]] = {
    "empty": {"text": ""},
    "other text": {"text": "Not what I said."},
    "no": {"consent": False},
    **{name: {"text": text} for name, text in TEXTS.items()},
    "bot": {"role": "system", "speaker_id": "bot"},
    "whisper": {"role": "supervisor", "speaker_id": "s"},
    "another": {"speaker_id": "x"},
    "a third": {"speaker_id": "y"},
    "to the first": {"addressee": "c"},
    "to another": {"addressee": "x"},
}


@st.composite
def session_logs(draw: st.DrawFn, name: str) -> list[bytes]:
    """One session with gaps, duplicates, invalid events, maybe an end with events after it."""
    consent = draw(st.sampled_from([True, True, True, None, False]))
    yes_at = draw(st.integers(0, 2))
    approach_at = draw(st.integers(0, 4))
    log = []
    for seq in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["turn"] * 8 + ["hole", "twice", "broken", *CHANGES]))
        if kind == "broken":
            log.append(b"broken")
        if kind != "hole":
            facts = {"approach": "motivational-interviewing"} if seq == approach_at else {}
            log.append(turn(name, seq, consent=consent if seq == yes_at else None, **facts))
        if kind == "other text":
            log.append(turn(name, seq, **CHANGES[kind]))
        elif kind in CHANGES:
            log[-1] = turn(name, seq, **CHANGES[kind])
        if kind == "twice":
            log.append(turn(name, seq))
    if draw(st.booleans()):
        log.append(end(name))
        log.append(turn(name, draw(st.integers(0, 14))))
    log.insert(draw(st.integers(0, len(log))), outcome(name))
    return log


@st.composite
def logs(draw: st.DrawFn) -> list[list[bytes]]:
    """Several sessions, each in its own order."""
    return [draw(session_logs(name)) for name in "abc"[: draw(st.integers(1, 3))]]


def interleaved(sessions: list[list[bytes]], seed: int) -> list[Received]:
    """One log in which every session keeps its order."""
    choose = random.Random(seed)
    rest = [list(log) for log in sessions]
    merged = []
    while live := [log for log in rest if log]:
        merged.append(choose.choice(live).pop(0))
    return [one(raw, offset) for offset, raw in enumerate(merged)]


def ended(log: list[Received], cuts: list[int]) -> dict[Any, Any]:
    database = Database()
    database.run(log, cuts)
    return database.flush_idle().rows


@RELAXED
@given(logs(), st.lists(st.integers(0, 60), max_size=8), st.integers(0, 9), st.integers(0, 9))
def test_batches_and_interleaving_do_not_matter(
    sessions: list[list[bytes]], cuts: list[int], one_seed: int, other_seed: int
) -> None:
    whole = ended(interleaved(sessions, one_seed), [])
    assert ended(interleaved(sessions, other_seed), cuts) == whole


@RELAXED
@given(logs(), st.lists(st.integers(0, 60), max_size=4), st.integers(0, 60), st.integers(0, 60))
def test_rereading_a_part_of_the_log_does_not_matter(
    sessions: list[list[bytes]], cuts: list[int], stop: int, back: int
) -> None:
    """As if a worker died between commit and acknowledgement."""
    log = interleaved(sessions, 1)
    stop %= len(log) + 1
    database = Database()
    database.run(log[:stop], cuts)
    database.run(log[max(0, stop - back) :], cuts)
    assert database.flush_idle().rows == ended(log, [])


@RELAXED
@given(logs(), st.integers(1, 40))
def test_idle_checks_in_between_do_not_matter(sessions: list[list[bytes]], every: int) -> None:
    log = interleaved(sessions, 1)
    database = Database()
    for start in range(0, len(log), every):
        database.run(log[start : start + every], [])
        database.flush_idle()
    assert database.flush_idle().rows == ended(log, [])


def next_time(log: list[Received], start: int, session_id: str) -> datetime | None:
    """The time of the session's next turn or end; repeated ones have no effect."""
    before = {received.raw for received in log[:start]}
    for received in log[start:]:
        event = received.event
        of_session = isinstance(event, Turn | SessionEnd) and event.session_id == session_id
        if of_session and received.raw not in before:
            return event.occurred_at
    return None


@RELAXED
@given(logs(), st.integers(0, 9), st.integers(1, 9))
def test_ticks_between_events_do_not_matter(
    sessions: list[list[bytes]], seed: int, every: int
) -> None:
    """A time rule fires with its deadline as time, whether a tick or an event detects it."""
    closed = [[*log, end(name, reason="over")] for name, log in zip("abc", sessions, strict=False)]
    log = interleaved(closed, seed)
    database = Database()
    for start in range(0, len(log), every):
        database.run(log[start : start + every], [])
        for name, raw in list(database.states.items()):
            now = next_time(log, start + every, name)
            if now is not None:
                database.store(PIPELINE.fire_due({name: Versioned(unpack(raw))}, now))
    assert database.flush_idle().rows == ended(log, [])


def delayed(delays: list[int]) -> list[Received]:
    """Turns, each after the turn that is this many later."""
    order = sorted(range(len(delays)), key=lambda seq: (seq + delays[seq], delays[seq]))
    return [one(turn(seq=seq), offset) for offset, seq in enumerate(order)]


@RELAXED
@given(st.lists(st.integers(0, BOUND), min_size=5, max_size=20), st.lists(st.integers(0, 40)))
@example([BOUND, 0, 0, 0, 0], [])
def test_disorder_within_the_bound_does_not_matter(delays: list[int], cuts: list[int]) -> None:
    """Until the missing turn arrives, at most as many wait as may."""
    assert ended(delayed(delays), cuts) == ended(delayed([0] * len(delays)), [])


def test_disorder_beyond_the_bound_matters() -> None:
    assert ended(delayed([BOUND + 1, 0, 0, 0, 0, 0]), []) != ended(delayed([0] * 6), [])


def test_these_tests_can_fail() -> None:
    """A lost turn is detected."""
    log = [one(turn(seq=seq), seq) for seq in range(6)]
    assert ended(log, []) != ended(log[:2] + log[3:], [])
    assert json.loads(turn(seq=2))["seq"] == 2
