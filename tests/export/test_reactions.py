"""Reading a bundle's head from its graph, and fine-tuning one of its tasks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

from export import __main__ as command  # noqa: E402
from export import reactions  # noqa: E402
from export.onnx_graphs import export_head  # noqa: E402
from export.quantize import half_weights  # noqa: E402
from models import bundle  # noqa: E402  # noqa: E402
from models.data import load_corpora  # noqa: E402
from models.data.contrast import REACTIONS  # noqa: E402
from models.data.corpora import Turn  # noqa: E402
from models.data.registry import describe  # noqa: E402
from models.data.split import DESCRIPTION  # noqa: E402
from models.fit import train  # noqa: E402  # noqa: E402
from models.fit.calibrate import Calibration  # noqa: E402
from models.labels import CLIENT, COUNSELLOR, HEADS  # noqa: E402
from models.model import multitask, onnx_model  # noqa: E402  # noqa: E402
from models.model.batches import tokenise  # noqa: E402
from models.model.head_graph import HeadGraphError, read_head, write_task  # noqa: E402
from models.model.multitask import MultitaskModel  # noqa: E402
from stream_app.inference.bundles import bundle as bundles  # noqa: E402
from tests.models.tiny import (  # noqa: E402
    tiny_model,
    tiny_tokenizer,
    write_contexts,
    write_corpora,
)

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_contexts(write_corpora(tmp_path_factory.mktemp("corpora"), size=60))


@pytest.fixture(scope="module")
def built(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny bundle after a few training steps."""
    folder, out = tmp_path_factory.mktemp("model"), tmp_path_factory.mktemp("bundle")
    conversations = load_corpora(data_dir)
    model, tokenizer = tiny_model(), tiny_tokenizer()
    segments = tokenise(conversations, tokenizer)
    train.fit(model, segments, train.Recipe(epochs=1, pairs_a_step=12, bf16=False), max_steps=3)
    about = dict.fromkeys(bundle.TRAINING_KEYS, "made up") | {
        "seed": 17,
        "split": DESCRIPTION,
        "data": describe(conversations),
    }
    multitask.save(model, tokenizer, folder, about)
    Calibration().write(folder / "calibration.json")
    command.build(folder, out, command.Profile.fp32, conversations, [])
    return out


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "bundle"))


def distinct_model() -> MultitaskModel:
    """A model without two equal weights, because the exporter deduplicates equal ones."""
    model = tiny_model(seed=5).eval()
    with torch.no_grad():
        for weights in model.head.parameters():
            weights.add_(0.01 * torch.randn(weights.shape))
    return model


def head_outputs(folder: Path) -> dict[str, np.ndarray]:
    graph = onnx_model.session(folder / bundle.HEAD)
    chance = np.random.default_rng(3)
    window = {name: value.numpy() for name, value in onnx_model.example_windows(48).items()}
    for name in ("target", "context"):
        window[name] = chance.normal(size=window[name].shape).astype(np.float32)
    names = [output.name for output in graph.get_outputs()]
    found = graph.run(names, {name: window[name] for name in onnx_model.HEAD_INPUTS})
    return dict(zip(names, found, strict=True))


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graph") / "head.onnx"
    export_head(distinct_model().head, 48, path)
    return path


@pytest.mark.parametrize("half", [False, True])
def test_an_exported_head_is_read_back_unchanged(graph: Path, tmp_path: Path, half: bool) -> None:
    model, path = distinct_model(), graph
    if half:
        half_weights(path, smaller := tmp_path / "smaller.onnx")
        path = smaller
    read = read_head(path).state_dict()
    for name, value in model.head.state_dict().items():
        assert torch.allclose(read[name], value, atol=1e-3 if half else 0.0), name


def test_a_graph_whose_weights_do_not_reproduce_its_scores_is_refused(
    graph: Path, tmp_path: Path
) -> None:
    model, path = onnx.load(graph), tmp_path / "other.onnx"
    for node in model.graph.node:
        if node.op_type == "Gelu":
            node.op_type = "Sigmoid"
            del node.attribute[:]
    onnx.save(model, path)
    with pytest.raises(HeadGraphError, match="differs by"):
        read_head(path)


def test_only_the_written_task_changes(folder: Path) -> None:
    before = head_outputs(folder)
    other = read_head(folder / bundle.HEAD).tasks[REACTIONS]
    with torch.no_grad():
        for weights in other.parameters():
            weights.add_(0.5)
    write_task(folder / bundle.HEAD, REACTIONS, other)
    after = head_outputs(folder)
    for head in HEADS:
        same = np.array_equal(before[head.name], after[head.name])
        assert same == (head.name != REACTIONS), head.name


def test_a_task_that_the_graph_lacks_is_refused(folder: Path) -> None:
    with pytest.raises(HeadGraphError, match="no weights for"):
        write_task(folder / bundle.HEAD, "kindness", torch.nn.Linear(2, 2))


def test_contrast_is_learned_and_ordinary_outputs_are_kept() -> None:
    torch.manual_seed(0)
    task = torch.nn.Linear(6, 3)
    plain, pairs = torch.randn(200, 6), torch.randn(200, 6)
    plain[:, 5] = 0.0
    pairs[:, 5] = 3.0
    pairs[:, :5] *= 0.1
    none = torch.tensor([[1.0, 0.0, 0.0]]).repeat(200, 1)
    usual = reactions.Examples(plain, plain, torch.zeros(200, 3))
    labels = reactions.Examples(plain, plain, task(plain).detach().softmax(-1))
    contrast = reactions.Examples(pairs, pairs, none)
    recipe = reactions.Recipe(epochs=40, rate=0.02)
    after = reactions.learn(task, labels, contrast, usual, recipe)
    assert (after(pairs).argmax(1) == 0).float().mean() > 0.95
    assert (after(plain).argmax(1) == task(plain).argmax(1)).float().mean() > 0.9


def test_ordinary_turns_are_used_in_both_views() -> None:
    turns = [Turn(role, str(i)) for i, role in enumerate((CLIENT, COUNSELLOR) * 5)]
    chat = type("Chat", (), {"turns": turns})()
    windows = reactions.ordinary([chat], 100)
    assert len(windows) == 10
    assert all(window.target.role == COUNSELLOR for window in windows)
    middle = [w for w in windows if w.target.text == "5"]
    assert [[turn.text for turn in w.turns] for w in middle] == [
        ["2", "3", "4", "5"],
        ["2", "3", "4", "5", "6", "7", "8"],
    ]


def test_the_command_rewrites_a_bundle_that_still_loads(
    folder: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = head_outputs(folder)
    reactions.main(folder, data_dir)
    printed = json.loads(capsys.readouterr().out)
    content = json.loads((folder / bundle.MANIFEST).read_text(encoding="utf-8"))
    assert content["metrics"]["reactions"] == printed
    assert content["files"][bundle.HEAD] == bundle.sha256(folder / bundle.HEAD)
    bundles.load(folder)
    after = head_outputs(folder)
    changed = [name for name in before if not np.array_equal(before[name], after[name])]
    assert changed == [REACTIONS]


def test_a_bundle_of_another_split_is_refused(folder: Path, data_dir: Path) -> None:
    content = json.loads((folder / bundle.MANIFEST).read_text(encoding="utf-8"))
    content["training"]["split"] = "fold 0 of 5"
    (folder / bundle.MANIFEST).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(SystemExit, match="without a held-out tenth"):
        reactions.main(folder, data_dir)
