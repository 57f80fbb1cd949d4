"""Recordings are processed in order, whatever was encoded ahead."""

import threading
from collections.abc import Iterator

import pytest

from stream_app.contracts import plausible
from stream_app.contracts.events import Role
from stream_app.core.session.ports import Encoding
from stream_app.core.session.session_state import Versioned
from stream_app.recordings import offline_batches
from stream_app.recordings.event_files import InputError
from stream_app.recordings.past_of_file import PastOfFile
from tests.fakes import FakeScorer
from tests.store.batches import end, pipeline, turn


def processed(events: Iterator[bytes], batch: int) -> list[tuple[str, int, str]]:
    states: dict[str, Versioned] = {}
    found = offline_batches.process(
        pipeline(), events, states, batch, plausible.DEFAULT, PastOfFile(())
    )
    return [
        (score.session_id, score.seq, score.stage.value)
        for result in found
        for score in result.turn_scores
    ]


def conversation() -> list[bytes]:
    """Two sessions in turns, consent stated in the first turn only; then both end."""
    turns = [
        turn(seq, session_id=name, consent=True if seq == 0 else None)
        for seq in range(20)
        for name in ("one", "two")
    ]
    return [*turns, end(session_id="one"), b"", end(session_id="two")]


@pytest.mark.parametrize("batch", [1, 7, 100])
def test_the_size_of_batches_changes_neither_scores_nor_their_order(batch: int) -> None:
    found = processed(iter(conversation()), batch)
    assert found == processed(iter(conversation()), 2)
    assert len(set(found)) == len(found) == 2 * 2 * 20


def test_each_turn_is_encoded_once_and_beside_the_main_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[int] = []
    encode = FakeScorer.encode

    def encoded(
        scorer: FakeScorer, texts: list[str], roles: list[Role] | None = None
    ) -> list[Encoding]:
        threads.extend([threading.get_ident()] * len(texts))
        return encode(scorer, texts, roles)

    monkeypatch.setattr(FakeScorer, "encode", encoded)
    processed(iter(conversation()), 7)
    assert len(threads) == 40
    assert threading.get_ident() not in threads


def test_an_unreadable_input_is_an_error_after_what_could_be_read() -> None:
    def broken() -> Iterator[bytes]:
        yield turn(0)
        yield turn(1)
        raise InputError("the file ends in the middle")

    found = offline_batches.process(pipeline(), broken(), {}, 1, plausible.DEFAULT, PastOfFile(()))
    assert len(next(found).turn_scores) == 1
    with pytest.raises(InputError, match="in the middle"):
        list(found)
