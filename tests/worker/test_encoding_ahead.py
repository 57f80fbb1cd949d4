"""Batches prepared ahead: always decoded, and encoded where consent is known."""

from collections.abc import Callable

import pytest
from msgspec import structs

from stream_app.contracts.events import Role, decode
from stream_app.core.session.ports import Encoding
from stream_app.core.session.session_state import SessionState
from stream_app.store.stream.repository import Store
from tests.fakes import FakeScorer
from tests.store.batches import end, pipeline, turn
from tests.worker.processors import handle, processor, records

Open = Callable[..., Store]


class Encoder:
    """A scorer that records the encoded texts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []
        encode = FakeScorer.encode

        def encoded(
            scorer: FakeScorer, texts: list[str], roles: list[Role] | None = None
        ) -> list[Encoding]:
            self.texts += texts
            return encode(scorer, texts, roles)

        monkeypatch.setattr(FakeScorer, "encode", encoded)


def test_a_turn_is_encoded_ahead_if_its_consent_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core = pipeline()
    encoder = Encoder(monkeypatch)
    known = SessionState("known", core.bundle_id, consent=True)
    batches = [
        [
            turn(0, session_id="new", text="first", consent=True),
            turn(1, session_id="new", text="second", consent=None),
            turn(0, session_id="silent", text="nobody said", consent=None),
        ],
        [
            turn(2, session_id="new", text="third", consent=None),
            turn(7, session_id="known", text="known", consent=None),
            turn(8, session_id="known", text="taken back", consent=False),
            turn(9, session_id="known", text="after that", consent=None),
        ],
        [
            turn(10, session_id="known", text="in the next batch", consent=None),
            end(session_id="known"),
        ],
    ]
    ahead = [
        core.encodings.ahead([decode(value) for value in values], {"known": known}.get)
        for values in batches
    ]
    assert encoder.texts == ["first", "second", "third", "known"]
    assert [[encoding is not None for encoding in batch] for batch in ahead] == [
        [True, True, False],
        [True, True, False, False],
        [False, False],
    ]


def test_a_turn_encoded_ahead_is_not_encoded_again(
    open_prepared: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = processor(open_prepared())
    encoder = Encoder(monkeypatch)
    handle(worker, [turn(0, text="one"), turn(1, text="two")])
    assert encoder.texts == ["one", "two"]


def test_other_turns_are_encoded_once_the_state_is_loaded(
    open_prepared: Open,
) -> None:
    store = open_prepared()
    handle(processor(store), [turn(0)])
    restarted = processor(store)  # its cache is empty
    [received] = restarted.prepare(records([turn(1, consent=None)]))
    assert received.encoding is None
    assert len(restarted.handle([received]).result.turns) == 1


def test_consent_withdrawn_in_the_meantime_is_respected(open_prepared: Open) -> None:
    worker = processor(open_prepared())
    handle(worker, [turn(0)])
    [ahead] = worker.prepare(records([turn(2, consent=None)]))
    assert ahead.encoding is not None
    handle(worker, [turn(1, consent=False)])
    result = worker.handle([ahead]).result
    assert result.turns == []
    assert result.counts["withheld"] == 1


def test_encoding_ahead_changes_no_score(open_prepared: Open) -> None:
    values = [turn(seq, session_id=name) for seq in range(6) for name in "ab"]
    ahead = handle(processor(open_prepared("ahead")), values)
    worker = processor(open_prepared("after"))
    batch = worker.prepare(records(values))
    bare = [structs.replace(received, encoding=None) for received in batch]
    assert worker.handle(bare).messages == ahead.messages
