"""``rapport score``: by its command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from stream_app.commands.event_files import sample_sessions
from stream_app.commands.replay import recently_ended_samples
from tests.commands.conftest import Rapport
from tests.e2e.service import differences, offline_key
from tests.store.batches import turn

SECRET = "zanzibar"


def write(folder: Path, lines: list[bytes]) -> Path:
    file = folder / "in.jsonl"
    file.write_bytes(b"".join(line + b"\n" for line in lines))
    return file


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_bytes().splitlines()]


@pytest.fixture(scope="module")
def log() -> list[bytes]:
    samples = sample_sessions()
    few = [*samples[:3], samples[-1]]
    return [event.value for event in recently_ended_samples(few, "score")]


def test_batch_size_changes_no_score_and_each_session_has_one_summary(
    rapport: Rapport, tmp_path: Path, log: list[bytes]
) -> None:
    file = write(tmp_path, log)
    found = []
    for batch in (1, 300):
        done = rapport("score", file, "-o", f"out-{batch}", "--batch", batch)
        assert done.returncode == 0, done.stderr
        found.append(read(tmp_path / f"out-{batch}"))
    one, many = ({offline_key(row): row for row in rows} for rows in found)
    assert len(one) > 100
    assert differences(one, many) == []

    texts: dict[tuple[str, int], str] = {}
    for value in log:
        try:
            event = json.loads(value)
            texts.setdefault((event["session_id"], event["seq"]), event["text"])
        except (ValueError, KeyError, UnicodeDecodeError):
            continue
    summaries = [row["session_id"] for row in found[0] if row["type"] == "session_score"]
    wanted = {f"score-{n:03}-{p.stem}" for n, p in enumerate([*sample_sessions()[:3]])}
    assert len(summaries) == len(set(summaries)) == 4
    assert wanted < set(summaries)
    for row in found[0]:
        for level in row.get("expressed", {}).values():
            for start, end in level.get("rationale", []) if isinstance(level, dict) else []:
                assert 0 <= start < end <= len(texts[row["session_id"], row["seq"]])


def test_dead_letters_are_reported_by_line_without_text(rapport: Rapport, tmp_path: Path) -> None:
    bad = [b"", turn(text=f"{SECRET}\x00"), turn(), b"", SECRET.encode(), turn(1, role=SECRET)]
    done = rapport("score", write(tmp_path, bad))
    assert done.returncode == 0
    assert "line 2: dead letter (nul-byte)" in done.stderr
    assert "line 5: dead letter (not-json)" in done.stderr
    assert "line 6: dead letter (schema)" in done.stderr
    assert "line 4" not in done.stderr
    assert SECRET not in done.stderr + done.stdout
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["type"] for row in rows] == ["turn_score", "turn_score", "session_score"]


def test_without_consent_nothing_is_scored_unless_it_was_given_elsewhere(
    rapport: Rapport, tmp_path: Path
) -> None:
    file = write(tmp_path, [turn(consent=None), turn(1, consent=None)])
    done = rapport("score", file, "-o", "out")
    assert "2 events were withheld" in done.stderr
    assert "--assume-consent" in done.stderr
    [summary] = read(tmp_path / "out")
    assert (summary["type"], summary["withheld_turns"]) == ("session_score", 2)
    done = rapport("score", file, "-o", "out", "--assume-consent")
    assert "withheld" not in done.stderr
    assert {row["type"] for row in read(tmp_path / "out")} == {"turn_score", "session_score"}


def test_unusable_input_or_output_is_a_one_line_error(rapport: Rapport, tmp_path: Path) -> None:
    file = write(tmp_path, [turn()])
    before = file.read_bytes()
    for arguments in (
        (file, "-o", file),
        (file, "-o", tmp_path / "no" / "out"),
        (tmp_path / "gone",),
    ):
        done = rapport("score", *arguments)
        assert done.returncode == 1
        assert done.stderr.startswith("rapport: ")
        assert len(done.stderr.splitlines()) == 1
    assert file.read_bytes() == before
