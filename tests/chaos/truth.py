"""What the database must contain: a single-threaded calculation over the records of the log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import structs

from stream_app import bootstrap
from stream_app.contracts import cloudevents, scores
from stream_app.contracts.events import Turn
from stream_app.contracts.scores import Alert, SessionScore, TurnScore
from stream_app.core.pipeline.pipeline import (
    Pipeline,
    Received,
    Source,
    is_revision,
    parts,
    receive,
)
from stream_app.core.session.batch import BatchResult, Revised
from stream_app.core.session.session_state import Versioned
from stream_app.plain_text.copies import spoken
from stream_app.recordings.past_of_file import EVERY_SESSION, PastOfFile
from stream_app.settings import Settings
from stream_app.store.database import rows
from stream_app.store.database.privacy import Privacy
from stream_app.worker.batches.record_decoder import LOG_APPEND_TIME
from tests.chaos import clocks, miskeyed
from tests.e2e.service import offline_key

BATCH = 256
_PROCESSED_AT = datetime(2000, 1, 1, tzinfo=UTC)

Letter = tuple[str, str, bytes]
"""A dead letter: id, reason and the original bytes."""


@dataclass
class Truth:
    """The expected rows by key. ``miskeyed``: session and seq of the turns with other keys."""

    scored: dict[Any, Any] = field(default_factory=dict)
    turns: dict[Any, Any] = field(default_factory=dict)
    outcomes: dict[Any, Any] = field(default_factory=dict)
    letters: set[Letter] = field(default_factory=set)
    miskeyed: set[tuple[str, int]] = field(default_factory=set)

    def add(self, result: BatchResult, privacy: Privacy) -> None:
        """Add what a batch stores, without the scores of sessions."""
        if result.revised is not None:
            self._revise(result.revised, privacy)
        for output in (*result.turn_scores, *result.alerts):
            self._add_scored(output)
        for stored in result.turns:
            row = rows.turn_row(stored, privacy, _PROCESSED_AT)
            self.turns[row["session_id"], row["seq"]] = row
        for outcome in result.outcomes:
            row = rows.outcome_row(outcome)
            self.outcomes[row["outcome_id"]] = row
        for item in result.dead_letters:
            self.letters.add((item.letter.dead_letter_id, item.letter.reason, item.raw))

    def add_sessions(self, found: Sequence[SessionScore]) -> None:
        """Add the scores of sessions."""
        for score in found:
            self._add_scored(score)

    def _revise(self, revised: Revised, privacy: Privacy) -> None:
        """Change or erase a turn, and drop the scores that no longer hold."""
        place = revised.session_id, revised.seq
        if revised.text is None:
            self.turns.pop(place, None)
            self.outcomes = {
                key: row
                for key, row in self.outcomes.items()
                if (row["session_id"], row["seq"]) != place
            }
        else:
            text = privacy.redacted(revised.text)
            self.turns[place] |= {
                "text": text,
                "chars": len(text),
                "words": len(spoken(revised.text).text.split()),
            }
        for seq, stage in revised.stale:
            key = ("turn_score", revised.session_id, seq, stage.value, revised.bundle)
            self.scored.pop(key, None)

    def _add_scored(self, output: TurnScore | Alert | SessionScore) -> None:
        row = json.loads(scores.encode(output))
        self.scored[offline_key(row)] = row


def calculate(
    settings: Settings, records: Iterable[Any], privacy: Privacy, erased: set[str]
) -> Truth:
    """Process the records of each partition in order, without the erased sessions.

    Sessions that wait for an answer at the end of the log get it no more: their alerts fire.
    """
    truth = Truth()
    log = list(_in_order(settings, records, truth, erased))
    pipeline = bootstrap.pipeline(settings, bootstrap.scorer(settings))
    states: dict[str, Versioned] = {}
    sessions = _SessionScores()
    for result in _results(pipeline, log, states):
        truth.add(result, privacy)
        sessions.add(result.session_scores)
    truth.add_sessions(sessions.whole())
    return truth


def _in_order(
    settings: Settings, records: Iterable[Any], truth: Truth, erased: set[str]
) -> Iterator[Received]:
    """The records whose order is known; turns of miskeyed sessions are only noted."""
    for record in records:
        received = _received(settings, record)
        session_id = getattr(received.event, "session_id", "")
        if miskeyed.is_miskeyed(session_id):
            if isinstance(received.event, Turn):
                truth.miskeyed.add((session_id, received.event.seq))
        elif session_id not in erased:
            yield received


def _results(
    pipeline: Pipeline, log: list[Received], states: dict[str, Versioned]
) -> Iterator[BatchResult]:
    past = PastOfFile(EVERY_SESSION)
    for start in range(0, len(log), BATCH):
        for part in parts(log[start : start + BATCH]):
            revised = {event.session_id for one in part if is_revision(event := one.event)}
            found = {session_id: past.of(session_id) for session_id in revised}
            result = pipeline.process(part, states, found)
            past.note(result)
            yield result
    for session_id, versioned in states.items():
        if clocks.is_silent(session_id) and versioned.state.last_activity_at is not None:
            later = versioned.state.last_activity_at + timedelta(days=1)
            yield pipeline.fire_due({session_id: versioned}, later)
    yield pipeline.flush_idle({key: v for key, v in states.items() if not v.state.closed})


class _SessionScores:
    """The latest score of each session, with the risks of all its messages."""

    def __init__(self) -> None:
        self._latest: dict[str, SessionScore] = {}
        self._points: dict[str, list[tuple[int, float]]] = {}

    def add(self, found: Sequence[SessionScore]) -> None:
        for score in found:
            self._points.setdefault(score.session_id, []).extend(score.risk_by_turn)
            self._latest[score.session_id] = score

    def whole(self) -> list[SessionScore]:
        return [
            structs.replace(score, risk_by_turn=self._points[session_id])
            for session_id, score in self._latest.items()
        ]


def _received(settings: Settings, record: Any) -> Received:
    source = Source(record.topic, record.partition, record.offset)
    if record.timestamp_type != LOG_APPEND_TIME:
        raise AssertionError("the topic does not have the broker's times")
    at = datetime.fromtimestamp(record.timestamp / 1000, UTC)
    headers = cloudevents.headers_of(record.headers)
    received = receive(source, record.value, headers, at, at)
    return structs.replace(received, event=settings.plausible_times.checked(received.event, at))
