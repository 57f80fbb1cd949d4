"""The 16-bit encoder on the CPU provider: weights and outputs, not speed."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("onnxscript")

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto  # noqa: E402

from export.float16 import FUSED, FusionError, float16  # noqa: E402
from export.onnx_graphs import Graphs, export_graphs  # noqa: E402
from models.onnx_model import OnnxModel  # noqa: E402
from tests.models.tiny import tiny_model  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Graphs:
    return export_graphs(tiny_model().eval(), tmp_path_factory.mktemp("graphs"))


@pytest.fixture(scope="module")
def half(graphs: Graphs) -> Path:
    target = graphs.encoder.with_name("half.onnx")
    float16(graphs.encoder, target)
    return target


def turns(rows: int, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(rows * tokens)
    sizes = torch.randint(1, tokens + 1, (rows, 1), generator=generator)
    mask = (torch.arange(tokens) < sizes).long()
    return torch.randint(3, 60, (rows, tokens), generator=generator) * mask, mask


def test_weights_are_16_bit_and_the_interface_is_the_same(graphs: Graphs, half: Path) -> None:
    before, after = onnx.load(graphs.encoder), onnx.load(half)
    for kind in ("input", "output"):
        for old, new in zip(getattr(before.graph, kind), getattr(after.graph, kind), strict=True):
            assert (old.name, old.type.tensor_type.elem_type) == (
                new.name,
                new.type.tensor_type.elem_type,
            )
    weights = [item for item in after.graph.initializer if len(item.dims) == 2]
    assert len(weights) > 10
    assert TensorProto.FLOAT not in {item.data_type for item in weights}
    assert half.stat().st_size < 0.6 * graphs.encoder.stat().st_size


def test_operators_of_every_layer_are_fused(half: Path) -> None:
    kinds = [node.op_type for node in onnx.load(half).graph.node]
    layers = 2
    assert kinds.count("BiasGelu") == layers
    assert kinds.count("SkipLayerNormalization") == 2 * layers
    assert set(FUSED) <= set(kinds)


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (8, 64), (2, 192)])
def test_float16_outputs_equal_float32_within_rounding(
    graphs: Graphs, half: Path, shape: tuple[int, int]
) -> None:
    ids, mask = turns(*shape)
    vectors, logits = OnnxModel(graphs.encoder, graphs.head).encode(ids, mask)
    given, given_logits = OnnxModel(half, graphs.head).encode(ids, mask)
    assert torch.isfinite(given).all()
    largest = float(vectors.abs().max())
    assert float((vectors - given).abs().max()) < 0.005 * largest
    present = mask.unsqueeze(-1)
    assert float(((logits - given_logits) * present).abs().max()) < 0.02


def test_a_turn_has_the_same_output_alone_and_padded(graphs: Graphs, half: Path) -> None:
    scorer = OnnxModel(half, graphs.head)
    ids, mask = turns(8, 32)
    together, _ = scorer.encode(ids, mask)
    for row, size in enumerate(mask.sum(1)):
        alone, _ = scorer.encode(ids[row : row + 1, :size], mask[row : row + 1, :size])
        np.testing.assert_allclose(alone[0], together[row], atol=5e-3)


def test_an_unsupported_graph_is_refused(graphs: Graphs, tmp_path: Path) -> None:
    with pytest.raises(FusionError, match="no BiasGelu could be fused"):
        float16(graphs.head, tmp_path / "half.onnx")
