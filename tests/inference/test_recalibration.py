"""Recalibration of heads: where it is applied, and which parameters are refused."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np
import pytest

from stream_app.contracts.events import Role
from stream_app.contracts.scores import Stage
from stream_app.core.measures.window import ScoringRequest, WindowTurn
from stream_app.core.session.ports import HeadScores
from stream_app.errors import BundleError
from stream_app.inference.bundles.adaptations import Adaptation, Recalibration
from stream_app.inference.bundles.bundle import ADAPTED_FORMAT, FORMAT, MANIFEST, SHIPPED, load
from stream_app.inference.bundles.recalibration import recalibrated
from stream_app.inference.scorer import OnnxScorer

ER, IP = "emotional_reactions", "interpretations"
IDENTITY = Recalibration([0.0, 0.0, 0.0])
TEXTS = ["I am so sorry, that must hurt.", "What happened then?", "Take an aspirin.", "Hm."]


def adapted(tmp_path: Path, *steps: dict[str, Recalibration], form: int = ADAPTED_FORMAT) -> Path:
    """The nano bundle with adaptations."""
    folder = tmp_path / "adapted"
    shutil.copytree(SHIPPED / "nano", folder)
    content = json.loads((folder / MANIFEST).read_bytes())
    content["format"] = form
    content["adaptations"] = [
        msgspec.to_builtins(Adaptation("parent", "0" * 64, step)) for step in steps
    ]
    (folder / MANIFEST).write_text(json.dumps(content), "utf-8")
    return folder


def scores(folder: Path, texts: list[str]) -> list[HeadScores]:
    scorer = OnnxScorer(load(folder))
    encoded = scorer.encode(texts, [Role.COUNSELLOR] * len(texts))
    at = datetime(2026, 1, 5, tzinfo=UTC)
    turns = [
        WindowTurn(seq, Role.COUNSELLOR, at, 0, 1, found.vectors, found.rationales)
        for seq, found in enumerate(encoded)
    ]
    return scorer.score([ScoringRequest(turn, Stage.FINAL, []) for turn in turns])


def test_zeros_leave_all_scores_as_they_are(tmp_path: Path) -> None:
    before = scores(SHIPPED / "nano", TEXTS)
    after = scores(adapted(tmp_path, {ER: IDENTITY}), TEXTS)
    for one, other in zip(before, after, strict=True):
        assert (one.client, one.perceived, one.abstained) == (
            other.client,
            other.perceived,
            other.abstained,
        )
        own = [found.expressed.level(ER) for found in (one, other)]
        assert own[0] is not None
        assert own[1] is not None
        assert own[0].level == own[1].level
        assert own[0].probabilities == pytest.approx(own[1].probabilities, abs=1e-9)


def test_an_intercept_shifts_one_head_and_no_other(tmp_path: Path) -> None:
    before = scores(SHIPPED / "nano", TEXTS)
    after = scores(adapted(tmp_path, {ER: Recalibration([9.0, 0.0, 0.0])}), TEXTS)
    levels = [found.expressed.level(ER) for found in after]
    assert [found.level for found in levels if found] == [0, 0, 0, 0]
    assert [one.expressed.level(IP) for one in before] == [one.expressed.level(IP) for one in after]


def test_steps_are_applied_one_after_the_other(tmp_path: Path) -> None:
    there, back = Recalibration([1.5, 0.0, -1.0]), Recalibration([-1.5, 0.0, 1.0])
    before = scores(SHIPPED / "nano", TEXTS)
    after = scores(adapted(tmp_path, {ER: there}, {ER: back}), TEXTS)
    for one, other in zip(before, after, strict=True):
        own = [found.expressed.level(ER) for found in (one, other)]
        assert own[0] is not None
        assert own[1] is not None
        assert own[0].probabilities == pytest.approx(own[1].probabilities, abs=1e-9)


def test_a_rows_result_does_not_depend_on_the_other_rows() -> None:
    rng = np.random.default_rng(3)
    p = {ER: rng.dirichlet(np.ones(3), 257), IP: rng.dirichlet(np.ones(3), 257)}
    weights = rng.normal(size=(3, 3)).tolist()
    step = {ER: Recalibration([0.1, 0.2, 0.3], {ER: weights, IP: weights})}
    together = recalibrated(p, step)[ER]
    for row in range(257):
        alone = recalibrated({name: found[row : row + 1] for name, found in p.items()}, step)
        assert (alone[ER][0] == together[row]).all()


@pytest.mark.parametrize(
    "step",
    [
        {"warmth": IDENTITY},
        {ER: Recalibration([0.0, 0.0])},
        {ER: Recalibration([0.0, 0.0, 0.0], {"engagement": [[0.0, 0.0]] * 3})},
        {ER: Recalibration([0.0, 0.0, 0.0], {"talk_type": [[0.0, 0.0, 0.0]] * 3})},
        {ER: Recalibration([0.0, 0.0, 0.0], {IP: [[0.0, 0.0, 0.0]] * 2})},
        {ER: Recalibration([0.0, 0.0, 0.0], {IP: [[0.0, 0.0]] * 3})},
    ],
    ids=["unknown head", "short", "other dimension", "other role", "two rows", "two columns"],
)
def test_parameters_that_do_not_fit_are_refused(
    tmp_path: Path, step: dict[str, Recalibration]
) -> None:
    with pytest.raises(BundleError):
        load(adapted(tmp_path, step))


def test_adaptations_need_the_format_that_older_releases_refuse(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=f"needs format {ADAPTED_FORMAT}"):
        load(adapted(tmp_path, {ER: IDENTITY}, form=FORMAT))
