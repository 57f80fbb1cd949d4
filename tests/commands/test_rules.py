"""``rapport rules check`` and ``test``, by their command line, with the sample sessions."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from stream_app.recordings.event_files import sample_events, sample_sessions
from stream_app.settings import DEFAULT_RULES
from tests.commands.conftest import Rapport
from tests.rule_texts import HEAD, rule_text
from tests.store.batches import end, outcome, turn

SAMPLES = ("counselling-01", "counselling-02", "peer-support-03", "peer-support-08")


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    file = tmp_path / "sessions.jsonl"
    start = datetime(2026, 3, 2, 9, tzinfo=UTC)
    chosen = [path for path in sample_sessions() if path.stem.startswith(SAMPLES)]
    values = [e.value for path in chosen for e in sample_events(path, path.stem, start, 1.0)]
    file.write_bytes(b"".join(value + b"\n" for value in values))
    return file


def test_check_prints_the_rules_of_a_file(rapport: Rapport) -> None:
    done = rapport("rules", "check", DEFAULT_RULES)
    assert done.returncode == 0, done.stderr
    assert "4 rules, digest " in done.stdout
    assert "low-empathy" in done.stdout


def test_check_reports_each_error_with_its_line(rapport_process: Rapport, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(HEAD + rule_text("a", when="riks > 0.5", severity="high"), "utf-8")
    done = rapport_process("rules", "check", file)
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert first.endswith("mine.yaml:5: `severity` must be info, warning or critical")
    assert "mine.yaml:6: `when`, column 1: there is no variable or function `riks`" in second


def test_the_shipped_rules_on_sample_sessions(rapport: Rapport, sessions: Path) -> None:
    done = rapport("rules", "test", DEFAULT_RULES, sessions, COLUMNS="200")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    [risk] = [line for line in lines if line.startswith("peer-support-08")]
    assert "low-empathy  seq " in risk
    assert "Little empathy lately (risk 0." in risk
    dropped = [line for line in lines if line.startswith("counselling-02")]
    assert any("sudden-drop  seq " in line for line in dropped)
    [row] = [line for line in lines if line.startswith("  low-empathy ")]
    cells = row.split()
    assert cells[1] == "4"
    assert int(cells[2]) >= int(cells[3]) >= 1
    texts = [json.loads(line).get("text") for line in sessions.read_text("utf-8").splitlines()]
    assert not [text for text in texts if text and len(text) > 20 and text in done.stdout]


def test_ratings_determine_false_alarms_and_detections(rapport: Rapport, tmp_path: Path) -> None:
    """A rule for one team fires in one of two good sessions and in the only low one."""
    ratings = {"good-1": 5.0, "good-2": 4.0, "low": 1.0, "middling": 3.0}
    log = []
    for name, rating in ratings.items():
        team = "east" if name == "good-2" else "west"
        log += [turn(seq, session_id=name, team=team) for seq in range(6)]
        log += [end(session_id=name), outcome(session_id=name, value=rating)]
    (tmp_path / "log.jsonl").write_bytes(b"".join(line + b"\n" for line in log))
    rule = rule_text("west", when="counsellor_turns >= 2", teams="[west]")
    (tmp_path / "rules.yaml").write_text(HEAD + rule, "utf-8")
    done = rapport("rules", "test", "rules.yaml", "log.jsonl", COLUMNS="200")
    [row] = [line for line in done.stdout.splitlines() if line.startswith("  west ")]
    cells = row.split()
    assert cells == ["west", "4", "3", "3", "50.0", "100.0", "2.0"]
    assert "low: 1 sessions rated 2 or less; good: 2 rated 4 or more" in done.stdout


def test_a_session_without_an_end_fires_time_rules_only_with_live(
    rapport: Rapport, tmp_path: Path
) -> None:
    (tmp_path / "log.jsonl").write_bytes(turn(0) + b"\n")
    rule = rule_text("waits", summary="{waiting_seconds} s.", when="waiting", for_="90s")
    (tmp_path / "rules.yaml").write_text(HEAD + rule, "utf-8")
    found = [
        rapport("rules", "test", "rules.yaml", "log.jsonl", *more).stdout
        for more in ((), ("--live",))
    ]
    assert ["waits  seq 0  2026-01-05 10:01:30  90 s." in out for out in found] == [False, True]


def test_a_test_without_a_valid_event_fails(rapport: Rapport, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b"no event\n{}\n")
    done = rapport("rules", "test", DEFAULT_RULES, "log.jsonl")
    assert done.returncode == 1
    assert "log.jsonl has no events to score: none of its 2 events is valid" in done.stderr
    (tmp_path / "log.jsonl").write_bytes(b"no event\n" + turn(0) + b"\n")
    assert rapport("rules", "test", DEFAULT_RULES, "log.jsonl").returncode == 0
