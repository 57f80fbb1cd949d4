"""The small bundle that ships: everything that the default one says, at a part of its cost."""

import json
from pathlib import Path

import pytest

from stream_app.commands.event_files import sample_sessions
from stream_app.inference import bundle as bundles
from tests.commands.conftest import Rapport


@pytest.fixture(scope="module")
def nano() -> bundles.Bundle:
    return bundles.load(bundles.find("nano"))


@pytest.fixture(scope="module")
def default() -> bundles.Bundle:
    return bundles.load()


def test_it_has_the_heads_the_window_and_the_risk_of_the_default(
    nano: bundles.Bundle, default: bundles.Bundle
) -> None:
    own, known = nano.manifest, default.manifest
    assert own.bundle_id != known.bundle_id
    assert own.window == known.window
    assert own.head == known.head
    assert own.risk == known.risk
    assert own.encoder.batch_independent
    assert (own.encoder.hidden_size, own.encoder.max_tokens) == (
        known.encoder.hidden_size,
        known.encoder.max_tokens,
    )
    assert [(h.name, h.dimension, h.kind, h.roles, h.labels) for h in own.heads] == [
        (h.name, h.dimension, h.kind, h.roles, h.labels) for h in known.heads
    ]
    assert own.distress == known.distress


def test_it_costs_at_most_a_quarter_and_says_what_it_loses(nano: bundles.Bundle) -> None:
    about = nano.manifest.training["distillation"]
    assert about["flops_a_token"] <= about["teacher_flops_a_token"] / 4
    size = sum(path.stat().st_size for path in nano.path.iterdir())
    assert size <= 20_000_000
    card = nano.file("MODEL_CARD.md").read_text("utf-8")
    assert "not a diagnosis" in card
    assert nano.manifest.bundle_id in card
    assert "| strategy |" in card.split("## Beside the bundle")[1]


@pytest.mark.parametrize("by_option", [True, False])
def test_the_samples_are_scored_with_it_by_its_name(
    rapport: Rapport, tmp_path: Path, by_option: bool
) -> None:
    sample = next(path for path in sample_sessions() if not path.stem.startswith("broken"))
    options = ("--bundle", "nano") if by_option else ()
    environment = {} if by_option else {"RAPPORT_BUNDLE": "nano"}
    done = rapport("score", sample, "-o", "out.jsonl", "--assume-consent", *options, **environment)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    scores = [row for row in rows if row["type"] == "turn_score"]
    assert scores
    assert all(row["bundle"].startswith("rapport-nano-") for row in scores)
    (session,) = (row for row in rows if row["type"] == "session_score")
    assert 0.0 <= session["low_empathy_risk"] <= 1.0
