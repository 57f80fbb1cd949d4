"""Every shipped bundle has the default's heads, and is selected by name."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from stream_app.inference.bundles import bundle as bundles
from stream_app.recordings.event_files import sample_events, sample_sessions
from tests.commands.conftest import Rapport

pytestmark = pytest.mark.parametrize("name", bundles.shipped())


READ = ("answer", "lapse", "crisis_language", "opportunity")
"""Heads of the reader, which the small bundle lacks."""


def test_the_bundle_has_the_heads_window_and_references_of_the_default(name: str) -> None:
    own, known = bundles.load(bundles.find(name)).manifest, bundles.load().manifest
    assert (own.bundle_id == known.bundle_id) is (name == "default")
    assert own.window == known.window
    assert own.head == known.head
    assert own.empathy is not None
    assert known.empathy is not None
    assert own.empathy.domains.keys() == known.empathy.domains.keys()
    assert own.empathy.approaches.keys() == known.empathy.approaches.keys()
    assert own.outcomes == known.outcomes
    assert own.distress == known.distress
    assert (own.crisis is None) == (own.reader is not None)  # the reader has the head itself
    assert own.encoder.batch_independent
    assert (own.encoder.hidden_size, own.encoder.max_tokens) == (
        known.encoder.hidden_size,
        known.encoder.max_tokens,
    )
    assert [(h.name, h.dimension, h.kind, h.roles, h.labels) for h in own.heads] == [
        (h.name, h.dimension, h.kind, h.roles, h.labels)
        for h in known.heads
        if own.reader is not None or h.name not in READ
    ]


def test_the_card_states_the_purpose_and_the_loss_by_distillation(name: str) -> None:
    bundle = bundles.load(bundles.find(name))
    card = bundle.file("MODEL_CARD.md").read_text("utf-8")
    assert "not a diagnosis" in card
    about = bundle.manifest.training.get("distillation")
    assert (about is None) is (name == "default")
    if about is not None:
        assert about["flops_a_token"] <= about["teacher_flops_a_token"] / 4
        assert sum(path.stat().st_size for path in bundle.path.iterdir()) <= 21_000_000
        comparison = card.split("## Compared with the bundle")[1]
        assert f"`{bundle.manifest.name}-" in comparison  # compared with the graphs of 1.6.0
        assert "| strategy |" in comparison


@pytest.mark.parametrize("by_option", [True, False])
def test_the_sample_sessions_are_scored_with_the_named_bundle(
    rapport: Rapport, tmp_path: Path, name: str, by_option: bool
) -> None:
    sample = next(path for path in sample_sessions() if not path.stem.startswith("broken"))
    options = ("--bundle", name) if by_option else ()
    environment = {} if by_option else {"RAPPORT_BUNDLE": name}
    events = sample_events(sample, "s", datetime(2026, 1, 5, tzinfo=UTC), 1.0)
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(event.value for event in events))
    done = rapport(
        "score", "in.jsonl", "-o", "out.jsonl", "--assume-consent", *options, **environment
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    scores = [row for row in rows if row["type"] == "turn_score"]
    assert scores
    bundle_id = bundles.load(bundles.find(name)).manifest.bundle_id
    assert {row["bundle"] for row in scores} == {bundle_id}
    (session,) = (row for row in rows if row["type"] == "session_score")
    assert 0.0 <= session["low_empathy_risk"] <= 1.0
    low, high = session["empathy_interval"]
    assert 0.0 <= low < session["empathy_index"] < high <= 1.0
    assert 0.0 <= session["empathy_percentile"] <= 100.0
