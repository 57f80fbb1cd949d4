"""Operations for a token are those of the float32 graph, however its weights are kept."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("onnxscript")

from benchmarks.operations import counted
from export.__main__ import HALVES, int8_versions
from export.onnx_graphs import export_graphs
from export.quantize import half_weights
from tests.models.tiny import tiny_model

pytestmark = pytest.mark.filterwarnings("default")

SHOWN = [[1, 9, 12, 2], [1, 25, 2]]
VERSIONS = {name: make for name, (make, _) in {**int8_versions(SHOWN), **HALVES}.items()}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_graphs(tiny_model().eval(), tmp_path_factory.mktemp("graphs"))[0]


def test_every_weight_but_the_embeddings_is_two_operations(encoder: Path) -> None:
    weights = tiny_model().encoder.named_parameters()
    products = [w.numel() for name, w in weights if w.dim() == 2 and "embedding" not in name]
    assert counted(encoder) == pytest.approx(2 * sum(products) / 1e6)


@pytest.mark.parametrize("make", [*VERSIONS.values(), half_weights], ids=[*VERSIONS, "stored"])
def test_other_versions_have_as_many(make, encoder: Path, tmp_path: Path) -> None:
    make(encoder, tmp_path / "other.onnx")
    assert counted(tmp_path / "other.onnx") == pytest.approx(counted(encoder))
