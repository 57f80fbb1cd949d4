"""Exports a ConvoKit corpus as a streamed zip of its folder.

The folder has ``utterances.jsonl``, ``speakers.json``, ``conversations.json``, ``corpus.json`` and
``index.json``, with scores in ``meta``. ``rapport score FOLDER`` can read it.
"""

import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO, Any, Final

import msgspec

from stream_app import __version__
from stream_app.analytics.views.columns import Kind
from stream_app.core.session.restrictions import NOTHING, Outputs
from stream_app.findings.exports.columns import (
    Column,
    session_columns,
    session_row,
    speaker_numbering,
    turn_columns,
    turn_row,
)
from stream_app.findings.exports.formats import Buffer
from stream_app.findings.exports.paging import cards, for_study, turns
from stream_app.store.accounts.people import Person
from stream_app.store.sessions import bundle_info
from stream_app.store.sessions.sessions import SessionCard, SessionFilter
from stream_app.store.sessions.transcripts import TurnRead
from stream_app.store.stream.repository import Store

FOLDER: Final = "rapport-corpus"
IN_MEMORY: Final = 4 * 1024 * 1024
"""Bytes of speakers or conversations kept in memory before they are spooled to a file."""
_NOT_META: Final = ("session_id", "turn_id", "speaker", "text", "occurred_at")
_TYPES: Final = {
    Kind.TEXT: "<class 'str'>",
    Kind.INTEGER: "<class 'int'>",
    Kind.NUMBER: "<class 'float'>",
    Kind.BOOLEAN: "<class 'bool'>",
    Kind.TIME: "<class 'str'>",
    Kind.JSON: "<class 'dict'>",
}


class _JsonObjectWriter:
    """Writes a JSON object entry by entry."""

    def __init__(self, sink: IO[bytes]) -> None:
        self.sink = sink
        self._first = True

    def add(self, key: str, value: Any) -> None:
        self.sink.write(b"{" if self._first else b",\n")
        self.sink.write(msgspec.json.encode(key) + b":" + msgspec.json.encode(value))
        self._first = False

    def copy_to(self, target: IO[bytes]) -> None:
        self.sink.write(b"{}" if self._first else b"}")
        self.sink.seek(0)
        while part := self.sink.read(65536):
            target.write(part)


def corpus(
    store: Store,
    person: Person,
    chosen: SessionFilter,
    *,
    with_text: bool,
    restricted: Outputs = NOTHING,
    study: str | None = None,
) -> Iterator[bytes]:
    """Yield the zip in chunks; ``restricted``: outputs that are left out."""
    buffer = Buffer()
    columns = turn_columns(bundle_info.heads(store), with_text=False, restricted=restricted)
    meta = [column for column in columns if column.name not in _NOT_META]
    with ExitStack() as stack:
        spooled = [
            _JsonObjectWriter(stack.enter_context(tempfile.SpooledTemporaryFile(IN_MEMORY)))
            for _ in range(2)
        ]
        speakers, conversations = spooled
        archive = stack.enter_context(zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED))
        with archive.open(f"{FOLDER}/utterances.jsonl", "w", force_zip64=True) as sink:
            audit_detail = for_study("export to ConvoKit", study) if with_text else None
            for page in cards(store, person, chosen, audit_detail):
                for card in page:
                    conversations.add(card.session_id, {"meta": _meta_of_session(card)})
                    for piece in _utterances(
                        store, person, card, speakers, meta, with_text=with_text
                    ):
                        sink.write(piece)
                        if part := buffer.drain():
                            yield part
        for name, objects in (("speakers", speakers), ("conversations", conversations)):
            with archive.open(f"{FOLDER}/{name}.json", "w", force_zip64=True) as target:
                objects.copy_to(target)
            yield buffer.drain()
        about = {"source": f"rapport {__version__}", "text": with_text}
        archive.writestr(f"{FOLDER}/corpus.json", msgspec.json.encode(about))
        archive.writestr(
            f"{FOLDER}/index.json", msgspec.json.encode(_index(meta, with_text=with_text))
        )
    yield buffer.drain()


def _utterances(
    store: Store,
    person: Person,
    card: SessionCard,
    speakers: _JsonObjectWriter,
    meta: list[Column],
    *,
    with_text: bool,
) -> Iterator[bytes]:
    name = speaker_numbering()
    known: set[str] = set()
    before: str | None = None
    for page in turns(store, person, card.session_id, with_text=with_text):
        lines = []
        for turn in page:
            speaker = f"{card.session_id}/{name(turn)}"
            if speaker not in known:
                known.add(speaker)
                speakers.add(speaker, {"meta": {"role": turn.role.value}})
            lines.append(msgspec.json.encode(_utterance(card, turn, speaker, before, meta)) + b"\n")
            before = _id(turn)
        yield b"".join(lines)


def _utterance(
    card: SessionCard, turn: TurnRead, speaker: str, before: str | None, meta: list[Column]
) -> dict[str, Any]:
    row = turn_row(card, turn, speaker)
    return {
        "id": _id(turn),
        "conversation_id": card.session_id,
        "text": turn.text or "",
        "speaker": speaker,
        "meta": {
            **{column.name: row.get(column.name) for column in meta},
            "turn_id": turn.turn_id,
        },
        "reply-to": before,
        "timestamp": turn.occurred_at.timestamp(),
        "vectors": [],
    }


def _id(turn: TurnRead) -> str:
    return f"{turn.session_id}/{turn.seq}"


def _meta_of_session(card: SessionCard) -> dict[str, Any]:
    """Leave out empty fields, because readers would take them for fields of an event."""
    row = {key: value for key, value in session_row(card).items() if value is not None}
    return {**row, "consent": card.consent} if card.consent is not None else row


def _index(meta: list[Column], *, with_text: bool) -> dict[str, Any]:
    def types(columns: list[Column]) -> dict[str, list[str]]:
        return {column.name: [_TYPES[column.kind]] for column in columns}

    return {
        "utterances-index": types(meta),
        "speakers-index": {"role": ["<class 'str'>"]},
        "conversations-index": types(session_columns(with_text=with_text)),
        "overall-index": {"source": ["<class 'str'>"], "text": ["<class 'bool'>"]},
        "version": 1,
        "vectors": [],
    }
