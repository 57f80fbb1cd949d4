"""The number of operations per token equals the float32 graph's for all precisions."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("onnxscript")

from benchmarks.operations import counted
from export.__main__ import int8_versions
from export.onnx_graphs import Graphs, export_graphs
from export.quantize import half_weights
from tests.models.tiny import tiny_model

pytestmark = pytest.mark.filterwarnings("default")

SHOWN = [[1, 9, 12, 2], [1, 25, 2]]
INT8 = {name: make for name, (make, _) in int8_versions(SHOWN).items()}
VERSIONS = {"stored": half_weights}


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Graphs:
    return export_graphs(tiny_model().eval(), tmp_path_factory.mktemp("graphs"))


def test_every_weight_except_embeddings_is_two_operations(graphs: Graphs) -> None:
    weights = tiny_model().encoder.named_parameters()
    products = [w.numel() for name, w in weights if w.dim() == 2 and "embedding" not in name]
    size = counted(graphs.encoder)
    assert size.mega_operations == pytest.approx(2 * sum(products) / 1e6)
    assert size.layers == len(tiny_model().encoder.layers)


@pytest.mark.parametrize("make", VERSIONS.values(), ids=VERSIONS)
def test_other_precisions_have_the_same_number_of_operations(
    make, graphs: Graphs, tmp_path: Path
) -> None:
    make(graphs.encoder, tmp_path / "other.onnx")
    assert counted(tmp_path / "other.onnx") == counted(graphs.encoder)


@pytest.mark.parametrize("make", INT8.values(), ids=INT8)
def test_packed_models_have_the_same_number_of_operations(
    make, graphs: Graphs, tmp_path: Path
) -> None:
    make(graphs.packed, tmp_path / "other.onnx")
    assert counted(tmp_path / "other.onnx") == counted(graphs.encoder)
