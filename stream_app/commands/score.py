"""``rapport score``: scores a file without Kafka and without a database."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct, field, structs
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from stream_app.commands.event_files import InputError
from stream_app.contracts import plausible, scores
from stream_app.contracts.plausible import PlausibleTimes
from stream_app.contracts.scores import DeadLetter, SessionScore
from stream_app.core.batch import BatchResult
from stream_app.core.pipeline import Pipeline, Received, Source, receive
from stream_app.core.session_state import Versioned


class Summary(Struct):
    """Counts and dead letters of a run."""

    counts: Counter[str] = field(default_factory=Counter)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    sessions: int = 0


def run(
    pipeline: Pipeline,
    events: Iterator[bytes],
    out: IO[bytes],
    batch: int,
    with_alerts: bool,
    times: PlausibleTimes = plausible.DEFAULT,
) -> Summary:
    """Score ``events`` and write JSON lines; finally flush the sessions without an end."""
    summary = Summary()
    states: dict[str, Versioned] = {}
    points: dict[str, list[tuple[int, float]]] = {}
    latest: dict[str, SessionScore] = {}

    def take(result: BatchResult) -> None:
        for turn_score in result.turn_scores:
            _line(out, scores.encode(turn_score))
        if with_alerts:
            for alert in result.alerts:
                _line(out, scores.encode(alert))
        for session_score in result.session_scores:
            points.setdefault(session_score.session_id, []).extend(session_score.risk_by_turn)
            latest[session_score.session_id] = session_score
        summary.counts.update(result.counts)
        summary.dead_letters.extend(item.letter for item in result.dead_letters)

    numbered = ((line, raw) for line, raw in enumerate(events) if raw)
    while chunk := list(islice(numbered, batch)):
        take(pipeline.process([receive_line(line, raw, times) for line, raw in chunk], states))
    take(
        pipeline.flush_idle({key: known for key, known in states.items() if not known.state.closed})
    )
    for session_id, session_score in latest.items():
        whole = msgspec.structs.replace(session_score, risk_by_turn=points[session_id])
        _line(out, scores.encode(whole))
    summary.sessions = len(latest)
    return summary


def open_output(path: Path | None, source: Path) -> AbstractContextManager[IO[bytes]]:
    """Open the output file, or standard output if ``path`` is None.

    Raises:
        InputError: the file cannot be written, or is the input.
    """
    if path is None:
        return nullcontext(sys.stdout.buffer)
    try:
        if path.exists() and source.exists() and path.samefile(source):
            raise InputError(f"{path} is the input; write to another file")
        return path.open("wb")
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {problem.strerror}") from problem


def with_progress(events: Iterator[bytes], show: bool) -> Iterator[bytes]:
    """Pass events through; with ``show``, display their number on standard error."""
    if not show:
        yield from events
        return
    columns = (SpinnerColumn(), TextColumn("{task.completed} events"), TimeElapsedColumn())
    with Progress(*columns, transient=True, console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=None)
        for event in events:
            progress.advance(task)
            yield event


def receive_line(line: int, raw: bytes, times: PlausibleTimes = plausible.DEFAULT) -> Received:
    """Decode a line of a file like a record that was appended to the log now."""
    found = receive(Source("file", 0, line), raw)
    return structs.replace(found, event=times.checked(found.event, datetime.now(UTC)))


def _line(out: IO[bytes], message: bytes) -> None:
    out.write(message)
    out.write(b"\n")
