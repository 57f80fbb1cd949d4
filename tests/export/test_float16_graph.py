"""The graphs for accelerators, computed by the CPU provider: operators and outputs, not speed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("onnxscript")

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402
import onnx  # noqa: E402
import onnxruntime as ort  # noqa: E402
from onnx import TensorProto  # noqa: E402

from benchmarks import agreement  # noqa: E402
from benchmarks.load import workload  # noqa: E402
from export.onnx_graphs import Graphs, export_graphs  # noqa: E402
from stream_app.inference import encoder, reader  # noqa: E402
from stream_app.inference.bundles import bundle as bundles  # noqa: E402
from stream_app.inference.devices import float16_graph  # noqa: E402
from stream_app.inference.devices.batching import Shapes  # noqa: E402
from stream_app.inference.devices.io_binding import BoundSession  # noqa: E402
from stream_app.inference.devices.provider_choice import Provider  # noqa: E402
from stream_app.inference.scorer import OnnxScorer, graphs  # noqa: E402
from tests.models.tiny import tiny_model  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")
OF_SHAPES = {"Shape", "NonZero", "Range", "Expand", "Size", "ConstantOfShape"}
"""Operators whose results ONNX Runtime computes, or needs, on the CPU."""

Outputs = list[npt.NDArray[Any]]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Graphs:
    return export_graphs(tiny_model().eval(), tmp_path_factory.mktemp("graphs"))


def run(graph: Path | bytes, feeds: dict[str, npt.NDArray[Any]]) -> Outputs:
    session = ort.InferenceSession(graph, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def turns(rows: int, tokens: int, most: int = 60) -> dict[str, npt.NDArray[Any]]:
    chance = np.random.default_rng(rows * tokens)
    mask = (np.arange(tokens) < chance.integers(1, tokens + 1, (rows, 1))).astype(np.int64)
    return {"input_ids": chance.integers(3, most, (rows, tokens)) * mask, "attention_mask": mask}


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (8, 64), (2, 192)])
@pytest.mark.parametrize("packed", [False, True])
def test_float16_outputs_equal_float32_within_rounding(
    exported: Graphs, shape: tuple[int, int], packed: bool
) -> None:
    """Padded or packed, the float32 graphs have the same weights."""
    feeds = turns(*shape)
    vectors, logits = run(exported.encoder, feeds)
    source = exported.packed if packed else exported.encoder
    given, given_logits = run(float16_graph.encoder(source), feeds)
    assert np.isfinite(given).all()
    assert np.abs(vectors - given).max() < 0.005 * np.abs(vectors).max()
    assert np.abs((logits - given_logits) * feeds["attention_mask"][..., None]).max() < 0.02


@pytest.mark.parametrize("name", bundles.shipped())
def test_no_operator_of_a_shipped_bundle_needs_the_cpu(name: str) -> None:
    bundle = bundles.load(bundles.find(name))
    for graph in graphs(bundle).values():
        assert graph.for_cuda is not None
        before, after = onnx.load(graph.file), onnx.load_from_string(graph.for_cuda())
        onnx.checker.check_model(after)
        kinds = [node.op_type for node in after.graph.node]
        assert not OF_SHAPES & set(kinds)
        assert "MatMulIntegerToFloat" not in kinds
        layers = sum(node.op_type == "Softmax" for node in before.graph.node)
        assert kinds.count("Attention") == layers
        assert kinds.count("SkipLayerNormalization") == 2 * layers
        weights = {each.data_type for each in after.graph.initializer if np.prod(each.dims) > 2048}
        assert weights == {TensorProto.FLOAT16}
        for kind in ("input", "output"):
            old, new = (getattr(model.graph, kind) for model in (before, after))
            assert [(each.name, each.type) for each in old] == [
                (each.name, each.type) for each in new
            ]


def test_a_shipped_bundle_scores_alike_in_both_forms() -> None:
    """Everything that CUDA sessions do, except the device: shapes, buffers and float16."""
    bundle = bundles.load()
    manifest = bundle.manifest
    assert manifest.reader is not None
    plain, other = (OnnxScorer(bundle, Provider.CPU) for _ in range(2))
    limits = {
        "encoder": encoder.batch_limits(manifest.encoder, Provider.CUDA, 1),
        "reader": reader.batch_limits(manifest.reader, Provider.CUDA, 1),
    }
    for name, graph in graphs(bundle).items():
        part, shapes = getattr(other, name), limits[name]
        assert isinstance(shapes, Shapes)
        assert graph.for_cuda is not None
        session = ort.InferenceSession(graph.for_cuda(), providers=["CPUExecutionProvider"])
        part.session = BoundSession(session, "cpu", len(shapes.all()))
        part.limits = shapes
    spoken = workload.turns(24)
    found = agreement.compared(*(agreement.scores(each, spoken) for each in (plain, other)))
    assert found.turns == 24
    assert found.labels > 0.96
    assert found.mean < 0.01
    assert found.largest < 0.12
    assert found.largest > 0.0, "not the same graphs"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda graphs: float16_graph.encoder(graphs.head), "head.onnx is not an encoder"),
        (lambda graphs: float16_graph.reader(graphs.encoder, [102]), "does not end as a reader"),
    ],
)
def test_another_kind_of_graph_is_refused(
    exported: Graphs, make: Callable[[Graphs], bytes], words: str
) -> None:
    with pytest.raises(float16_graph.UnknownGraphError, match=words):
        make(exported)
