"""An ONNX session with preallocated input and output buffers on the device for each shape.

``run`` has the interface of ``InferenceSession.run``: host arrays in, host arrays out. ONNX Runtime
neither allocates nor rebinds buffers in between, so that it can record the launches of a shape once
and replay them (CUDA graphs need fixed addresses and shapes under one ``gpu_graph_id``, and
sequential calls).

Copies are synchronous. ONNX Runtime's Python API supports copies on a stream only for execution
providers registered as plug-in libraries (``copy_tensors`` with a stream of ``OrtEpDevice``), and
there would be little gain: the ids and results of a full batch are less than a megabyte.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from stream_app.errors import ProviderError
from stream_app.inference.devices.batching import Shapes, padded
from stream_app.inference.devices.provider_choice import CudaDevice, Provider

Array = npt.NDArray[Any]
Place = tuple[str, int]
"""A kind of device and its number."""

TYPES: Final = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
}


class BoundSession:
    """``device``: ``cuda`` or ``cpu``, for the buffers; ``number``: of several devices.

    The buffers of a shape are never freed; there are at most ``most`` shapes. Threads may share a
    session: all runs are of one thread of its own, because ONNX Runtime keeps what it has recorded
    for each thread apart.
    """

    def __init__(
        self, session: ort.InferenceSession, device: str, most: int, number: int = 0
    ) -> None:
        self._session = session
        self._device = device
        self._most = most
        self._number = number
        self._layouts: dict[tuple[tuple[int, ...], ...], _Layout] = {}
        self._thread = ThreadPoolExecutor(1, device)

    def get_providers(self) -> list[str]:
        """The execution providers of the session."""
        return list(self._session.get_providers())

    def run(self, outputs: list[str], feeds: dict[str, Array]) -> list[Array]:
        """Copy the feeds in, run, and copy the named outputs out.

        Raises:
            ValueError: there are buffers for as many other shapes as there may be.
        """
        return self._thread.submit(self._run, outputs, feeds).result()

    def _run(self, outputs: list[str], feeds: dict[str, Array]) -> list[Array]:
        shapes = tuple(feeds[item.name].shape for item in self._session.get_inputs())
        layout = self._layouts.get(shapes)
        if layout is None:
            if len(self._layouts) == self._most:
                raise ValueError(f"more than {self._most} shapes; the last: {shapes}")
            place = (self._device, self._number)
            layout = _Layout(self._session, feeds, place, len(self._layouts) + 1)
            self._layouts[shapes] = layout
        return layout.run(outputs, feeds)


def bound(session: ort.InferenceSession, shapes: Shapes, device: CudaDevice) -> BoundSession:
    """A session on CUDA that has run each shape: its buffers are there, its launches recorded.

    Raises:
        ProviderError: a shape does not run, for example because memory is short.
    """
    every = shapes.all()
    found = BoundSession(session, Provider.CUDA.value, len(every), device.number)
    names = [output.name for output in session.get_outputs()]
    for rows, tokens in every:
        try:
            found.run(names, padded([], rows, tokens))
        except Exception as problem:  # its errors have no common base class
            raise ProviderError(
                f"a batch of {rows} texts of {tokens} tokens does not run on CUDA "
                f"({str(problem).splitlines()[0]}). If memory is short, raise "
                "RAPPORT_CUDA_MEMORY_MB or let fewer processes share the device."
            ) from problem
    return found


class _Layout:
    """The buffers of one shape and their binding; ``number``: id of its recorded launches."""

    def __init__(
        self, session: ort.InferenceSession, feeds: dict[str, Array], place: Place, number: int
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
            self._inputs[item.name] = _buffer(shape, item.type, place)
            self._binding.bind_ortvalue_input(item.name, self._inputs[item.name])
        self._outputs: dict[str, ort.OrtValue] = {}
        for item in session.get_outputs():
            shape = tuple(sizes[d] if isinstance(d, str) else d for d in item.shape)
            self._outputs[item.name] = _buffer(shape, item.type, place)
            self._binding.bind_ortvalue_output(item.name, self._outputs[item.name])

    def run(self, outputs: list[str], feeds: dict[str, Array]) -> list[Array]:
        """Run and return copies: on the CPU ``numpy()`` returns a view of the buffer."""
        for name, value in self._inputs.items():
            value.update_inplace(feeds[name])
        self._session.run_with_iobinding(self._binding, self._options)
        return [np.array(self._outputs[name].numpy()) for name in outputs]


def _buffer(shape: tuple[int, ...], kind: str, place: Place) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_shape_and_type(shape, TYPES[kind], *place)
