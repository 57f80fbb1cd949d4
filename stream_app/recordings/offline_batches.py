"""Processes a recording batch by batch; the next batch is encoded meanwhile."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import islice

from msgspec import structs

from stream_app.contracts.plausible import PlausibleTimes
from stream_app.core.pipeline.pipeline import (
    Pipeline,
    Received,
    Source,
    is_revision,
    parts,
    receive,
)
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.session_state import SessionState, Versioned
from stream_app.recordings.past_of_file import PastOfFile


def process(
    pipeline: Pipeline,
    events: Iterator[bytes],
    states: dict[str, Versioned],
    batch: int,
    times: PlausibleTimes,
    past: PastOfFile,
) -> Iterator[BatchResult]:
    """Process ``events``, one a line, empty lines skipped; results are in the order of the events.

    ``past`` and ``states`` are updated with each batch. ``events`` is read, and turns are encoded,
    in another thread, one batch ahead. Errors of ``events`` are raised here.
    """
    numbered = ((line, raw) for line, raw in enumerate(events) if raw)

    def known(session_id: str) -> SessionState:
        versioned = states.get(session_id)
        if versioned is not None:
            return versioned.state
        return SessionState(session_id, pipeline.bundle_id, undecided=True)

    def prepare() -> list[Received]:
        found = [_receive(line, raw, times) for line, raw in islice(numbered, batch)]
        ahead = pipeline.encodings.ahead([received.event for received in found], known)
        return [
            structs.replace(received, encoding=encoding) if encoding is not None else received
            for received, encoding in zip(found, ahead, strict=True)
        ]

    with ThreadPoolExecutor(1, "encode") as thread:
        coming = thread.submit(prepare)
        while received := coming.result():
            coming = thread.submit(prepare)
            for part in parts(received):
                names = {event.session_id for one in part if is_revision(event := one.event)}
                found = {session_id: past.of(session_id) for session_id in names}
                result = pipeline.process(part, states, found)
                past.note(result)
                yield result


def _receive(line: int, raw: bytes, times: PlausibleTimes) -> Received:
    """Decode a line of the file like a record that was appended to the log now."""
    found = receive(Source("file", 0, line), raw)
    return structs.replace(found, event=times.checked(found.event, datetime.now(UTC)))
