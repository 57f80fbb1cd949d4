import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests import training

collect_ignore_glob = training.ignored_files()


@pytest.fixture(scope="session", autouse=True)
def _equal_modules_exported_once() -> Iterator[None]:
    """Write the graph of an equal module again instead of tracing it, which takes seconds."""
    onnx_graphs = pytest.importorskip("export.onnx_graphs")
    export, written = onnx_graphs._export, {}

    def export_once(module: Any, example: Any, shapes: Any, outputs: Any, path: Any) -> None:
        key = (_content(module), _content_of_tensors(example), repr(shapes), outputs)
        if key in written:
            path.write_bytes(written[key])
            return
        export(module, example, shapes, outputs, path)
        written[key] = path.read_bytes()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx_graphs, "_export", export_once)
        yield


def _content(module: Any) -> tuple[str, str, str]:
    """What a graph depends on: the class, the layers, and all weights and buffers."""
    tensors = dict(module.named_parameters()) | dict(module.named_buffers())
    return type(module).__qualname__, repr(module), _content_of_tensors(tensors)


def _content_of_tensors(tensors: dict[str, Any]) -> str:
    digest = hashlib.sha256()
    for name, tensor in tensors.items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()
