"""Scores a file without Kafka and without a database."""

import sys
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import msgspec
from msgspec import Struct, field
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from stream_app.contracts import plausible, scores
from stream_app.contracts.plausible import PlausibleTimes
from stream_app.contracts.scores import DeadLetter, SessionScore
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.session_state import Versioned
from stream_app.recordings import offline_batches
from stream_app.recordings.event_files import InputError, raw_events, size
from stream_app.recordings.past_of_file import EVERY_SESSION, PastOfFile
from stream_app.recordings.whole_file import written_whole

STANDARD_OUTPUT: Final = Path("-")


class Summary(Struct):
    """Counts and dead letters of a run."""

    counts: Counter[str] = field(default_factory=Counter)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    sessions: int = 0

    @property
    def valid(self) -> int:
        """Number of events that are not dead letters."""
        return self.counts.total() - self.counts["dead-letter"]


class _Lines:
    """Writes what batches leave behind; ``held``: sessions whose turns' scores come last."""

    def __init__(self, out: IO[bytes], held: Container[str], *, with_alerts: bool) -> None:
        self.summary = Summary()
        self.held = held
        self._out = out
        self._with_alerts = with_alerts
        self._points: dict[str, dict[int, float]] = {}
        self._latest: dict[str, SessionScore] = {}

    def take(self, result: BatchResult) -> None:
        """Write turn scores and alerts, and note the rest."""
        for turn_score in result.turn_scores:
            if turn_score.session_id not in self.held:
                _line(self._out, scores.encode(turn_score))
        if self._with_alerts:
            for alert in result.alerts:
                _line(self._out, scores.encode(alert))
        for session_score in result.session_scores:
            points = self._points.setdefault(session_score.session_id, {})
            if result.revised is not None:  # the session was replayed
                points.clear()
            points.update(session_score.risk_by_turn)
            self._latest[session_score.session_id] = session_score
        self.summary.counts.update(result.counts)
        self.summary.dead_letters.extend(item.letter for item in result.dead_letters)

    def finish(self, past: PastOfFile) -> None:
        """Write the scores that were held, and the sessions."""
        for turn_score in past.scores():
            if turn_score.session_id in self.held:
                _line(self._out, scores.encode(turn_score))
        for session_id, session_score in self._latest.items():
            points = [*self._points[session_id].items()]
            whole = msgspec.structs.replace(session_score, risk_by_turn=points)
            _line(self._out, scores.encode(whole))
        self.summary.sessions = len(self._latest)


def run(
    pipeline: Pipeline,
    events: Iterator[bytes],
    out: IO[bytes],
    batch: int,
    with_alerts: bool,
    times: PlausibleTimes = plausible.DEFAULT,
    revised: Container[str] = EVERY_SESSION,
) -> Summary:
    """Score ``events`` and write JSON lines; finally flush the sessions without an end.

    ``revised``: sessions of which turns are edited or deleted. The scores of their turns come last,
    as they are after all edits. If they are not known, a later line replaces an earlier one.
    """
    states: dict[str, Versioned] = {}
    past = PastOfFile(revised)
    lines = _Lines(out, () if revised is EVERY_SESSION else revised, with_alerts=with_alerts)
    for result in offline_batches.process(pipeline, events, states, batch, times, past):
        lines.take(result)
    idle = pipeline.flush_idle({key: v for key, v in states.items() if not v.state.closed})
    past.note(idle)
    lines.take(idle)
    lines.finish(past)
    return lines.summary


@contextmanager
def open_output(path: Path | None, source: Path) -> Iterator[IO[bytes]]:
    """Open the output for the ``with`` block: standard output if ``path`` is None or ``-``.

    A file is complete or not there: see ``written_whole``.

    Raises:
        InputError: the file cannot be written, or is the input.
    """
    if path is None or path == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        return
    try:
        if path.exists() and source.exists() and path.samefile(source):
            raise InputError(f"{path} is the input; write to another file")
        with written_whole(path) as stream:
            yield stream
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {problem.strerror}") from problem


def with_progress(sources: Sequence[Path], console: Console | None) -> Iterator[bytes]:
    """The events of files; with a console, show how much of the files has been read."""
    if console is None:
        for source in sources:
            yield from raw_events(source)
        return
    columns = (
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[events]} events"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    sizes = [size(source) for source in sources]
    total = None if None in sizes else sum(filter(None, sizes))
    with Progress(*columns, transient=True, console=console) as progress:
        task = progress.add_task("", total=total, events=0)
        events = 0
        for source in sources:
            for event in raw_events(source, lambda read: progress.advance(task, read)):
                events += bool(event)
                progress.update(task, events=events)
                yield event


def _line(out: IO[bytes], message: bytes) -> None:
    out.write(message)
    out.write(b"\n")
