"""Files of JSON lines as programs and people write them."""

import gzip
import json
from pathlib import Path

import pytest

from stream_app.recordings.event_files import raw_events, timed_events
from stream_app.recordings.intent_tests import UtteranceFileError, read_utterances
from stream_app.recordings.json_lines import NotJsonLines, read_lines
from tests.commands.conftest import Rapport
from tests.store.batches import turn

EVENTS = [json.loads(turn()), json.loads(turn(1, text="a\u2028b “é” 😭"))]
LINES = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in EVENTS)
MARK = b"\xef\xbb\xbf"


def file(folder: Path, content: bytes) -> Path:
    path = folder / "events.jsonl"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        LINES.encode(),
        LINES.encode("utf-8-sig"),
        LINES.encode("utf-16"),
        LINES.encode("utf-16-le"),
        LINES.encode("utf-16-be"),
        LINES.encode("utf-32"),
        LINES.replace("\n", "\r\n").encode("utf-8-sig"),
        LINES.replace("\n", "\r").encode(),
        LINES.rstrip("\n").encode(),
        b"".join(MARK + line.encode() + b"\n" for line in LINES.split("\n")[:-1]),
        json.dumps(EVENTS).encode(),
        json.dumps(EVENTS, indent=1).encode("utf-8-sig"),
        json.dumps(EVENTS, indent=2, ensure_ascii=False).encode("utf-16"),
        "\n".join(json.dumps(event, indent=2) for event in EVENTS).encode(),
        "".join(map(json.dumps, EVENTS)).encode(),
        LINES.replace("\n", ",\n").encode(),
        "\n".join(json.dumps(each, indent=1).replace("{\n", "{", 1) for each in EVENTS).encode(),
        "".join("\x1e" + line + "\n" for line in LINES.split("\n")[:-1]).encode(),
    ],
)
def test_every_form_gives_the_same_events(tmp_path: Path, content: bytes) -> None:
    path, read = file(tmp_path, content), []
    found = [json.loads(line) for line in read_lines(path, read.append) if line]
    assert found == EVENTS
    assert sum(read) == len(content)
    assert [json.loads(event) for event in raw_events(path) if event] == EVENTS
    assert len(list(timed_events(path))) == len(EVENTS)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"\n\n" + LINES.encode(), [b"", b"", *LINES.encode().splitlines()]),
        (b"caf\xe9\n{}\n", [b"caf\xe9", b"{}"]),
        (b"[" * 100_000 + b"\n{}\n", [b"[" * 100_000, b"{}"]),
        (b"[1]\n[2]\n", [b"[1]", b"[2]"]),
        (b"{\n[\n", [b"{", b"["]),
        (b"{} {}\n{\n", [b"{} {}", b"{"]),
        ("{}\n{\ud83d}".encode("utf-16-le", "surrogatepass"), [b"{}", b"{\xed\xa0\xbd}"]),
        (b"", []),
        (b"\x00\x00\x00\x00\x07{}\n", [b"\x00\x00\x00\x00\x07{}"]),
    ],
)
def test_other_lines_are_left_to_the_contract(
    tmp_path: Path, content: bytes, lines: list[bytes]
) -> None:
    path = file(tmp_path, content)
    assert list(read_lines(path)) == lines
    assert list(raw_events(path)) == lines
    assert len(list(timed_events(path))) == len([line for line in lines if line])


@pytest.mark.parametrize(
    "content", [gzip.compress(b"{}", mtime=0), b"PK\x03\x04abc", b"\xff\xfea\x00b"]
)
def test_what_cannot_be_read_is_refused_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(NotJsonLines, match=r"unpack it first|in UTF-8"):
        list(read_lines(file(tmp_path, content)))


def test_labelled_utterances_are_read_in_the_same_forms(tmp_path: Path) -> None:
    row = {"text": "é", "role": "client", "intents": []}
    for content in (json.dumps(row).encode("utf-8-sig"), json.dumps([row]).encode("utf-16")):
        [found] = read_utterances(file(tmp_path, content), [])
        assert found.text == "é"
    for bad in (b'{"text": "\xe9"}', b"[" * 100_000 + b"\n"):
        with pytest.raises(UtteranceFileError, match=r"events\.jsonl:1: "):
            read_utterances(file(tmp_path, bad), [])


def test_a_mark_before_the_turn_with_the_consent_loses_nothing(
    rapport: Rapport, tmp_path: Path
) -> None:
    second = {key: value for key, value in EVENTS[1].items() if key != "consent"}
    lines = [{**EVENTS[0], "consent": True}, second]
    content = "".join(json.dumps(line) + "\n" for line in lines).encode("utf-8-sig")
    done = rapport("score", file(tmp_path, content), "-o", "out")
    assert "accepted 2" in done.stderr
    assert "withheld" not in done.stderr
