"""``rapport intents``, by its command line."""

import json
from pathlib import Path

import pytest

from stream_app.contracts.events import Role
from stream_app.recordings.event_files import sample_sessions
from stream_app.recordings.intent_tests import UtteranceFileError, read_utterances
from tests.commands.conftest import Rapport
from tests.core.test_intent_file import HEAD, intent


def test_check_prints_the_intents_of_a_shipped_set(rapport: Rapport) -> None:
    done = rapport("intents", "check", "crisis", "--bundle", "nano")
    assert done.returncode == 0, done.stderr
    assert "6 intents, digest " in done.stdout


def test_check_reports_each_error_with_its_line(rapport_process: Rapport, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(HEAD + intent("Refund") + intent("b", count=1), "utf-8")
    done = rapport_process("intents", "check", file)
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert "mine.yaml:3: `name` is required" in first
    assert "mine.yaml:11: `examples` must be a list of 3 to 10 sentences, not 1" in second


def test_test_prints_precision_and_recall_and_the_nearest_example(rapport: Rapport) -> None:
    done = rapport("intents", "test", "service", "--bundle", "nano", COLUMNS="200")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    [row] = [line.split() for line in lines if line.startswith("  express_apology ")]
    assert int(row[1]) == 8
    assert int(row[3]) >= 5
    place = next(i for i, line in enumerate(lines) if line.startswith("right  express_apology"))
    assert "nearest example (0." in lines[place + 1]
    assert lines[place].split("  ")[-1] not in lines[place + 1], "another sentence"


def test_test_reads_labelled_utterances(rapport: Rapport, tmp_path: Path) -> None:
    file = tmp_path / "labelled.jsonl"
    rows = [
        {"text": "Sorry about that mix-up!", "role": "counsellor", "intents": ["express_apology"]},
        {"text": "Sorry about that mix-up!", "role": "client", "intents": []},
    ]
    file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    done = rapport("intents", "test", "service", file, "--bundle", "nano", COLUMNS="200")
    assert done.returncode == 0, done.stderr
    [row] = [x.split() for x in done.stdout.splitlines() if x.startswith("  express_apology ")]
    assert row[1:] == ["1", "1", "1", "100", "100"]


def test_a_wrong_line_of_utterances_is_named(rapport_process: Rapport, tmp_path: Path) -> None:
    file = tmp_path / "labelled.jsonl"
    file.write_text('\n{"text": "Hi", "role": "client", "intents": ["greet"]}', "utf-8")
    done = rapport_process("intents", "test", "crisis", file, "--bundle", "nano")
    assert done.returncode == 1
    assert "labelled.jsonl:2: the file has no intent greet" in done.stderr


def test_utterances_are_of_clients_and_counsellors(tmp_path: Path) -> None:
    file = tmp_path / "labelled.jsonl"
    file.write_text('{"text": "Hi", "role": "Agent", "intents": []}', "utf-8")
    assert read_utterances(file, [])[0].role is Role.COUNSELLOR
    file.write_text('{"text": "Hi", "role": "bot", "intents": []}', "utf-8")
    with pytest.raises(UtteranceFileError, match="only clients and counsellors"):
        read_utterances(file, [])


def test_suggest_prints_groups_as_items_of_a_file(rapport: Rapport) -> None:
    chosen = [path for path in sample_sessions() if path.stem.startswith("counselling")]
    done = rapport("intents", "suggest", "service", *chosen, "--bundle", "nano", "--least", "3")
    assert done.returncode == 0, done.stderr
    assert "suggestions" in done.stderr
    assert "  - name: suggestion_1\n    role: " in done.stdout
