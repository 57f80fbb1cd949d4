"""Exports a graph once for each architecture: tracing takes seconds, and weights are only stored.

The graph of another module of the same layers gets its weights. It is used only if ONNX Runtime
then computes what the module does; otherwise the module is exported.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

Export = Callable[[Any, dict[str, Any], Any, tuple[str, ...], Path], None]
CLOSE = 1e-5
FORMS: tuple[Callable[[Any], Any], ...] = (
    lambda weight: weight,
    np.transpose,
    lambda weight: weight[0] if weight.ndim == 2 else weight,  # the types of all tokens
)
KNOWN = 30
"""Tokens that also a tiny model has; the example names others."""


class Exporter:
    """Stands in for the export of one module with an example of its inputs."""

    def __init__(self, export: Export, folder: Path) -> None:
        self._export = export
        self._folder = folder

    def __call__(
        self, module: Any, example: Any, shapes: Any, outputs: tuple[str, ...], path: Path
    ) -> None:
        given = [(name, tuple(tensor.shape)) for name, tensor in example.items()]
        key = repr((type(module).__qualname__, module, given, shapes, outputs))
        kept = self._folder / f"{hashlib.sha256(key.encode()).hexdigest()}.graph"
        with FileLock(kept.with_suffix(".lock")):
            if kept.exists():
                graph = _with_weights(*pickle.loads(kept.read_bytes()), _weights(module))
                path.write_bytes(graph or b"")
                if graph and _computes(path, module, example):
                    return
            self._export(module, example, shapes, outputs, path)
            kept.write_bytes(pickle.dumps((path.read_bytes(), _weights(module))))


def _weights(module: Any) -> dict[str, Any]:
    return {
        name: tensor.detach().cpu().numpy().copy() for name, tensor in module.state_dict().items()
    }


def _with_weights(graph: bytes, old: dict[str, Any], new: dict[str, Any]) -> bytes | None:
    """The graph with each initialiser replaced that is a weight, a transposed one or a row.

    None if an array of numbers is none of them: it may be computed from weights.
    """
    import onnx  # noqa: PLC0415

    found = onnx.load_from_string(graph)
    for initialiser in found.graph.initializer:
        value = onnx.numpy_helper.to_array(initialiser)
        same_name_first = sorted(old, key=lambda name: name != initialiser.name)
        for name, form in product(same_name_first, FORMS):
            known = form(old[name])
            if value.dtype == known.dtype and np.array_equal(value, known):
                changed = np.ascontiguousarray(form(new[name]))
                initialiser.CopyFrom(onnx.numpy_helper.from_array(changed, initialiser.name))
                break
        else:
            if value.size > 1 and np.issubdtype(value.dtype, np.floating):
                return None
    written: bytes = found.SerializeToString()
    return written


def _computes(path: Path, module: Any, example: dict[str, Any]) -> bool:
    import onnxruntime  # noqa: PLC0415
    import torch  # noqa: PLC0415

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs = {
        name: tensor % KNOWN if name == "input_ids" else tensor for name, tensor in example.items()
    }
    given = session.run(None, {name: tensor.numpy() for name, tensor in inputs.items()})
    with torch.inference_mode():
        expected = module.eval()(**inputs)
    flat = expected.values() if isinstance(expected, dict) else expected
    return all(
        np.allclose(one, other.numpy(), atol=CLOSE) for one, other in zip(given, flat, strict=True)
    )


@pytest.fixture(scope="session", autouse=True)
def _graphs_exported_once(
    tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Iterator[None]:
    """Have `export.onnx_graphs` use one exporter in all processes of the run.

    Two folders have this fixture: an exporter in an exporter would wait for its own lock.
    """
    onnx_graphs = pytest.importorskip("export.onnx_graphs")
    if isinstance(onnx_graphs._export, Exporter):
        yield
        return
    folder = tmp_path_factory.getbasetemp()
    folder = folder if worker_id == "master" else folder.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx_graphs, "_export", Exporter(onnx_graphs._export, folder))
        yield
