"""``rapport import`` on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from stream_app.cli import app
from stream_app.client import EventResult
from stream_app.contracts.events import Turn, decode
from stream_app.importers import delivery as importing
from stream_app.importers.imported import ImportRefused
from tests.commands.test_event_files import convokit, utterance
from tests.importers.test_chats import TRIGGER
from tests.importers.test_transcripts import TALK, ZOOM

ROLES = ["--role", "Ana=client", "--role", "ben=counsellor"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "call.vtt").write_text(ZOOM)
    (tmp_path / "tickets.json").write_text(json.dumps([TRIGGER, {"ticket": 9}]))
    convokit(tmp_path, utterance(2), utterance(1), utterance(3, text=""))
    return tmp_path


def run(*arguments: str) -> None:
    app(["import", *arguments], standalone_mode=False)


def test_a_transcript_becomes_a_file_that_can_be_scored(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "out.jsonl"
    start = ["--session", "call-17", "--start", "2026-03-02T09:00:00Z"]
    more = ["--consent", "--team", "north", "--lang", "en", "-o", str(out)]
    run("transcript", str(folder / "call.vtt"), *start, *ROLES, *more)
    *turns, end = [decode(line) for line in out.read_bytes().splitlines()]
    assert [turn.text for turn in turns if isinstance(turn, Turn)] == [text for _, text in TALK]
    assert [turn.seq for turn in turns if isinstance(turn, Turn)] == [0, 1, 2]
    assert {(t.team, t.lang, t.consent) for t in turns if isinstance(t, Turn)} == {
        ("north", "en", True)
    }
    assert end.session_id == "call-17"
    assert "1 sessions, 3 turns" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--start", "2026-03-02", *ROLES], "no time with an offset"),
        (["--start", "2026-03-02T09:00:00Z", *ROLES[:2]], "who is Ben"),
        (["--start", "2026-03-02T09:00:00Z", "--role", "Ana"], "SPEAKER=VALUE"),
        (["--start", "2026-03-02T09:00:00Z", *ROLES], "RAPPORT_URL and RAPPORT_TOKEN"),
    ],
)
def test_what_is_missing_is_said_in_a_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], word: str
) -> None:
    for name in (importing.URL, importing.TOKEN):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ImportRefused, match=word):
        run("transcript", str(folder / "call.vtt"), "--session", "s", *arguments)


def test_what_is_left_out_is_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("convokit", str(folder), "-o", "-")
    told = capsys.readouterr()
    found = [decode(line.encode()) for line in told.out.splitlines()]
    assert [(t.turn_id, t.seq) for t in found if isinstance(t, Turn)] == [("u1", 0), ("u2", 1)]
    assert "left out: line 3: empty-text" in told.err
    run("chat", str(folder / "tickets.json"), "--from", "zendesk", "-o", "-")
    told = capsys.readouterr()
    assert json.loads(told.out)["session_id"] == "zendesk-35436"
    assert "left out: 9: " in told.err


def test_events_are_sent_once_and_refusals_make_the_command_fail(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sent: list[tuple[str, int]] = []

    class Client:
        def __enter__(self) -> "Client":
            return self

        def __exit__(self, *_: Any) -> None: ...

        def send(self, *events: Any, key: str) -> list[Any]:
            sent.append((key, len(events)))
            codes = [None, *["broken"] * (len(events) - 1)]
            return [
                EventResult(n, code is None, code=code, detail="x") for n, code in enumerate(codes)
            ]

    monkeypatch.setattr(importing, "client", Client)
    for _ in range(2):
        with pytest.raises(ImportRefused, match="1 of 2 events were refused"):
            run("convokit", str(folder))
    assert len(set(sent)) == 1
    assert "left out: event 2 of c1: refused (broken): x" in capsys.readouterr().err


def test_receivers_need_the_secret_of_a_service(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ZENDESK", "INTERCOM", "SLACK", "TWILIO", "MATRIX"):
        monkeypatch.delenv(f"{name}_SECRET", raising=False)
    with pytest.raises(ImportRefused, match="TWILIO_SECRET"):
        run("webhooks")
    monkeypatch.delenv("MATRIX_URL", raising=False)
    with pytest.raises(ImportRefused, match="MATRIX_URL"):
        run("matrix", "position.txt")
