"""An ONNX session with preallocated input and output buffers on the device for each shape.

``run`` has the interface of ``InferenceSession.run``: host arrays in, host arrays out. ONNX Runtime
neither allocates nor rebinds buffers in between, so that it can record the launches of a shape once
and replay them (CUDA graphs need fixed addresses and shapes under one ``gpu_graph_id``, and
sequential calls).

Copies are synchronous. ONNX Runtime's Python API supports copies on a stream only for execution
providers registered as plug-in libraries (``copy_tensors`` with a stream of ``OrtEpDevice``), and
there would be little gain: the ids and results of a full batch are less than a megabyte.
"""

from threading import Lock
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

Array = npt.NDArray[Any]

TYPES: Final = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
}


class BoundSession:
    """``device``: ``cuda`` or ``cpu``, for the buffers. The buffers of a shape are never freed.

    Threads may share a session; their runs are serialised.
    """

    def __init__(self, session: ort.InferenceSession, device: str) -> None:
        self._session = session
        self._device = device
        self._layouts: dict[tuple[tuple[int, ...], ...], _Layout] = {}
        self._lock = Lock()

    def get_providers(self) -> list[str]:
        """The execution providers of the session."""
        return list(self._session.get_providers())

    def run(self, outputs: list[str], feeds: dict[str, Array]) -> list[Array]:
        """Copy the feeds in, run, and copy the named outputs out."""
        shapes = tuple(feeds[item.name].shape for item in self._session.get_inputs())
        with self._lock:
            layout = self._layouts.get(shapes)
            if layout is None:
                number = len(self._layouts) + 1
                layout = _Layout(self._session, feeds, self._device, number)
                self._layouts[shapes] = layout
            return layout.run(outputs, feeds)


class _Layout:
    """The buffers of one shape and their binding; ``number``: id of its recorded launches."""

    def __init__(
        self, session: ort.InferenceSession, feeds: dict[str, Array], device: str, number: int
    ) -> None:
        self._session = session
        self._binding = session.io_binding()
        self._options = ort.RunOptions()
        self._options.add_run_config_entry("gpu_graph_id", str(number))
        sizes: dict[str, int] = {}
        self._inputs: dict[str, ort.OrtValue] = {}
        for item in session.get_inputs():
            shape = feeds[item.name].shape
            sizes |= {d: n for d, n in zip(item.shape, shape, strict=True) if isinstance(d, str)}
            self._inputs[item.name] = _buffer(shape, item.type, device)
            self._binding.bind_ortvalue_input(item.name, self._inputs[item.name])
        self._outputs: dict[str, ort.OrtValue] = {}
        for item in session.get_outputs():
            shape = tuple(sizes[d] if isinstance(d, str) else d for d in item.shape)
            self._outputs[item.name] = _buffer(shape, item.type, device)
            self._binding.bind_ortvalue_output(item.name, self._outputs[item.name])

    def run(self, outputs: list[str], feeds: dict[str, Array]) -> list[Array]:
        """Run and return copies: on the CPU ``numpy()`` returns a view of the buffer."""
        for name, value in self._inputs.items():
            value.update_inplace(feeds[name])
        self._session.run_with_iobinding(self._binding, self._options)
        return [np.array(self._outputs[name].numpy()) for name in outputs]


def _buffer(shape: tuple[int, ...], kind: str, device: str) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_shape_and_type(shape, TYPES[kind], device, 0)
