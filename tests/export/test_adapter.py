"""Adapters on the frozen encoder of a tiny bundle: learnt from judged turns, written and scored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

from models.data import Conversation, load_corpora  # noqa: E402
from models.model.head_graph import read_head  # noqa: E402
from research.adaptation import adapter  # noqa: E402
from research.adaptation.adapter import Found  # noqa: E402
from stream_app.adaptation import choosing, judged_vectors  # noqa: E402
from stream_app.adaptation.judged_vectors import HeadJudgements, JudgedVectors  # noqa: E402
from stream_app.adaptation.new_bundle import DataCounts  # noqa: E402
from stream_app.contracts.events import Role  # noqa: E402
from stream_app.contracts.scores import Stage  # noqa: E402
from stream_app.core.measures.window import Neighbour, ScoringRequest, WindowTurn  # noqa: E402
from stream_app.errors import BundleError  # noqa: E402
from stream_app.inference.bundles import bundle as bundles  # noqa: E402
from stream_app.inference.bundles.bundle import ADAPTED_FORMAT, MANIFEST, Bundle  # noqa: E402
from stream_app.inference.scorer import OnnxScorer  # noqa: E402
from tests.export.test_heads import made  # noqa: E402
from tests.fakes import START  # noqa: E402
from tests.models.tiny import tiny_model, write_corpora  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")
HEAD = "emotional_reactions"
TURNS = 400
GROUPS = 10


@pytest.fixture(scope="module", autouse=True)
def _few_folds() -> Iterator[None]:
    """Cross-validate in three folds of three instead of five of five."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "FOLDS", 3)
        yield


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    conversations: list[Conversation] = load_corpora(
        write_corpora(tmp_path_factory.mktemp("corpora"), size=60)
    )
    return bundles.load(made(tmp_path_factory.mktemp("base"), tiny_model(), conversations, "tiny"))


@pytest.fixture(scope="module")
def requests() -> list[ScoringRequest]:
    """Counsellor turns with one preceding turn, of random vectors."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(TURNS):
        vectors = rng.normal(size=(2, 2, 48)).astype(np.float16)
        before, own = (
            WindowTurn(seq, role, START, 0, 7, vectors[seq].tobytes())
            for seq, role in enumerate((Role.CLIENT, Role.COUNSELLOR))
        )
        found.append(ScoringRequest(own, Stage.FINAL, [Neighbour(before, -1)]))
    return found


def judged(parent: Bundle, requests: list[ScoringRequest], *, as_shipped: bool) -> JudgedVectors:
    """Levels drawn as the bundle says, or by the sign of one number of the turn's vectors."""
    scorer = OnnxScorer(parent)
    rng = np.random.default_rng(1)
    if as_shipped:
        scored = [found.expressed.level(HEAD) for found in scorer.score(requests)]
        shares = [np.array(one.probabilities) for one in scored if one is not None]
        levels = [rng.choice(3, p=p / p.sum()) for p in shares]  # rounded: the sum may be 0.9999
    else:
        first = [np.frombuffer(one.turn.vectors, np.float16)[:5].sum() for one in requests]
        levels = [2 * int(value > 0) for value in first]
    return JudgedVectors(
        parent.manifest.bundle_id,
        parent.digest,
        DataCounts(TURNS, TURNS, 0, 2, GROUPS, 20, START, START, ("v1",), {}),
        0.0,
        scorer.head.feeds(requests),
        {
            HEAD: HeadJudgements(
                np.arange(TURNS),
                np.eye(3)[levels],
                np.arange(TURNS) % GROUPS,
                np.zeros(TURNS, dtype=bool),
                np.ones(TURNS, dtype=bool),
            )
        },
    )


@pytest.fixture(scope="module")
def learnt(
    parent: Bundle, requests: list[ScoringRequest], tmp_path_factory: pytest.TempPathFactory
) -> Found:
    """What was learnt from a file of judgements that the bundle does not explain."""
    folder = tmp_path_factory.mktemp("learnt")
    file = folder / "judged.npz"
    judged_vectors.write(judged(parent, requests, as_shipped=False), file)
    return adapter.adapt(parent, judged_vectors.read(file), folder / "new")


def test_an_adapter_learns_what_no_head_measures_and_changes_that_head_alone(
    parent: Bundle, requests: list[ScoringRequest], learnt: Found
) -> None:
    assert learnt.bundle is not None, learnt.adapters.markdown()
    [result], [simpler] = learnt.adapters.heads, learnt.recalibrations.heads
    assert result.validation is not None
    assert simpler.validation is not None
    assert result.validation.log_loss[1] < simpler.validation.log_loss[1] - 0.05
    manifest = learnt.bundle.manifest
    assert (manifest.format, manifest.encoder) == (ADAPTED_FORMAT, parent.manifest.encoder)
    for name, digest in parent.manifest.files.items():
        assert (manifest.files[name] == digest) == (name != parent.manifest.head.file)
    assert bundles.share_encoder(manifest, parent.manifest)  # a shadow encodes nothing again
    before, after = (OnnxScorer(each).score(requests) for each in (parent, learnt.bundle))
    moved = 0.0
    for one, other in zip(before, after, strict=True):
        for name, values in one.expressed.items():
            if name == HEAD:
                moved = max(
                    moved, abs(values.probabilities[0] - other.expressed[name].probabilities[0])
                )
            elif name != "empathy_total":
                assert msgspec.to_builtins(other.expressed[name]) == msgspec.to_builtins(values)
        assert other.perceived == one.perceived
    assert moved > 0.1
    card = (learnt.bundle.path / "MODEL_CARD.md").read_text("utf-8")
    assert "low-rank update of rank 4" in card
    assert "have other weights" in card
    read_head(learnt.bundle.file(manifest.head.file))  # research commands read it, too


def test_the_bundle_scores_as_it_was_validated(
    parent: Bundle, requests: list[ScoringRequest], learnt: Found
) -> None:
    content = judged(parent, requests, as_shipped=False)
    assert learnt.bundle is not None
    gold = content.heads[HEAD].target.argmax(axis=1)
    levels = [one.expressed.level(HEAD) for one in OnnxScorer(learnt.bundle).score(requests)]
    loss = np.mean([-np.log(p.probabilities[g]) for p, g in zip(levels, gold, strict=True) if p])
    [result] = learnt.adapters.heads
    assert result.validation is not None
    assert loss < result.validation.log_loss[0]
    assert loss < result.validation.log_loss[1] + 0.05  # it has seen them, the folds had not


def test_raters_who_agree_with_the_bundle_give_none(
    parent: Bundle, requests: list[ScoringRequest], tmp_path: Path
) -> None:
    found = adapter.adapt(parent, judged(parent, requests, as_shipped=True), tmp_path / "new")
    assert found.bundle is None
    assert not (tmp_path / "new").exists()
    assert "as shipped: no certain gain" in found.adapters.markdown()


def test_judgements_of_another_bundle_and_an_existing_folder_are_refused(
    parent: Bundle, requests: list[ScoringRequest], tmp_path: Path
) -> None:
    content = judged(parent, requests, as_shipped=False)
    with pytest.raises(BundleError, match="were exported with other-1"):
        adapter.adapt(parent, replace(content, bundle="other-1"), tmp_path / "new")
    with pytest.raises(BundleError, match="exists"):
        adapter.adapt(parent, content, tmp_path)


def recalibrated(parent: Bundle, out: Path, head: str, reads: str) -> Bundle:
    """The bundle after an adaptation in which ``head`` reads ``reads``."""
    content = msgspec.json.decode((parent.path / MANIFEST).read_bytes())
    out.mkdir()
    for name in parent.manifest.files:
        (out / name).write_bytes(parent.file(name).read_bytes())
    change = {"intercept": [0.0, 0.5, 1.0], "weights": {reads: [[0.0] * 3] * 3}}
    content |= {
        "format": ADAPTED_FORMAT,
        "version": "1.0.0.20261101",
        "adaptations": [
            {"parent": "p", "parent_digest": "d", "heads": {head: change}, "record": {}}
        ],
    }
    (out / MANIFEST).write_bytes(msgspec.json.encode(content))
    return bundles.load(out)


def test_an_adapter_replaces_the_heads_earlier_recalibration(
    parent: Bundle, requests: list[ScoringRequest], tmp_path: Path
) -> None:
    before = recalibrated(parent, tmp_path / "before", HEAD, HEAD)
    content = judged(before, requests, as_shipped=False)
    found = adapter.adapt(before, content, tmp_path / "new")
    assert found.bundle is not None
    assert [dict(one.heads) for one in found.bundle.manifest.adaptations] == [{}, {}]
    assert found.bundle.manifest.version == f"1.0.0.{datetime.now(UTC):%Y%m%d}"


def test_a_head_that_another_one_was_adapted_to_read_stays(
    parent: Bundle, requests: list[ScoringRequest], tmp_path: Path
) -> None:
    before = recalibrated(parent, tmp_path / "before", "explorations", HEAD)
    found = adapter.adapt(before, judged(before, requests, as_shipped=False), tmp_path / "new")
    assert found.bundle is None
    assert "explorations was adapted to read this head" in found.adapters.markdown()
