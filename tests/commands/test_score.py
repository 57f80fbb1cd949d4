"""``rapport score``: by its command line."""

import json
import signal
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from stream_app import bootstrap, cli
from stream_app.recordings.event_files import sample_sessions, size
from stream_app.recordings.replay import recently_ended_samples
from stream_app.recordings.scoring import with_progress
from stream_app.settings import DEFAULT_RULES
from tests.commands.conftest import Rapport
from tests.e2e.service import differences, offline_key
from tests.fakes import FakeScorer
from tests.rule_texts import EAGER
from tests.store.batches import pipeline, turn

SECRET = "zanzibar"


def write(folder: Path, lines: list[bytes]) -> Path:
    file = folder / "in.jsonl"
    file.write_bytes(b"".join(line + b"\n" for line in lines))
    return file


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_bytes().splitlines()]


@pytest.fixture
def scored(
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    tmp_path: Path,
    log_settings_kept: object,
):
    """Runs a command here, with a fake scorer: exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bootstrap, "offline_scorer", lambda _: FakeScorer())
    monkeypatch.setattr(bootstrap, "pipeline", lambda *_: pipeline())

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rapport", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        sys.stdout.buffer.flush()
        captured = capfdbinary.readouterr()
        return int(ended.value.code or 0), captured.out.decode(), captured.err.decode()

    return run


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


def test_dead_letters_are_reported_by_line_without_text(
    rapport_process: Rapport, tmp_path: Path
) -> None:
    bad = [b"", turn(text=f"{SECRET}\x00"), turn(), b"", SECRET.encode(), turn(1, role=SECRET)]
    done = rapport_process("score", write(tmp_path, bad))
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


def test_a_sample_session_is_scored_as_it_is_shipped(scored, tmp_path: Path) -> None:
    status, out, err = scored("score", str(sample_sessions()[0]))
    assert status == 0
    assert "dead letter" not in err
    rows = [json.loads(line) for line in out.splitlines()]
    assert {row["type"] for row in rows} == {"turn_score", "session_score"}
    assert rows[0]["occurred_at"].startswith("2000-01-01T00:00:00")


def test_rules_are_tested_on_sample_sessions_as_they_are_shipped(scored) -> None:
    files = [str(path) for path in sample_sessions()[:3]]
    status, out, err = scored("rules", "test", str(DEFAULT_RULES), *files)
    assert (status, err) == (0, "")
    [name] = {rule.name for rule in EAGER.rules}
    summary = [line.split() for line in out.splitlines() if line.strip().startswith(name)]
    assert [line[1] for line in summary] == ["3"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "it is empty"), (b"\n\n", "it is empty"), (b"x\ny\n", "none of its 2 events is valid")],
)
def test_without_a_valid_event_the_status_is_1_and_nothing_is_written(
    scored, tmp_path: Path, content: bytes, reason: str
) -> None:
    (tmp_path / "in.jsonl").write_bytes(content)
    (tmp_path / "out").write_text("earlier")
    status, out, err = scored("score", "in.jsonl", "-o", "out")
    assert (status, out) == (1, "")
    assert err.count("dead letter") == content.count(b"x") + content.count(b"y")
    assert err.splitlines()[-1] == f"rapport: in.jsonl has no events to score: {reason}"
    assert (tmp_path / "out").read_text() == "earlier"


def test_a_dash_is_standard_output(scored, tmp_path: Path) -> None:
    write(tmp_path, [turn()])
    _, without, _ = scored("score", "in.jsonl")
    status, out, _ = scored("score", "in.jsonl", "-o", "-")
    assert status == 0
    assert out == without != ""
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_leaves_the_earlier_output_and_no_partial_one(
    scored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    write(tmp_path, [turn(seq) for seq in range(8)])
    (tmp_path / "out").write_text("earlier")
    there: list[str] = []
    usual = FakeScorer.encode

    def interrupted(self: FakeScorer, *texts: object) -> object:
        there[:] = [path.name for path in tmp_path.iterdir()]
        if len(there) > 2:
            signal.raise_signal(number)
        return usual(self, *texts)

    monkeypatch.setattr(FakeScorer, "encode", interrupted)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        status, _, err = scored("score", "in.jsonl", "-o", "out", "--batch", "1")
    finally:
        signal.signal(signal.SIGINT, previous)
    assert status == 130
    assert "Traceback" not in err
    assert any(name.endswith(".partial") for name in there)
    assert {path.name for path in tmp_path.iterdir()} == {"in.jsonl", "out"}
    assert (tmp_path / "out").read_text() == "earlier"


@pytest.mark.parametrize("sources", [1, 2])
def test_a_terminal_shows_the_share_of_the_bytes_read(tmp_path: Path, sources: int) -> None:
    file = write(tmp_path, [turn(text="x" * 1000), b"", turn(text="x" * 1000)])
    terminal = Console(file=StringIO(), force_terminal=True, width=100)
    events = with_progress([file] * sources, terminal)
    read = [next(events), next(events)]
    events.close()
    assert all(read[:1])
    shown = terminal.file.getvalue()
    assert f"{50 // sources}%" in shown
    assert "1 events" in shown


def test_input_of_unknown_size_has_no_percentage() -> None:
    assert size(Path("/dev/null")) is None


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
