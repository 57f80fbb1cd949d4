"""Opens ONNX Runtime sessions and checks which execution provider they use.

``get_available_providers`` lists compiled-in providers, not working ones, so the session is asked.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

import onnxruntime as ort
import structlog
from msgspec import Struct

from stream_app.errors import ProviderError
from stream_app.inference.devices.provider_choice import FIRST_DEVICE, CudaDevice, Provider

log = structlog.get_logger(__name__)

CPU_PROVIDER: Final = "CPUExecutionProvider"
CUDA: Final = "CUDAExecutionProvider"
CUDA_PLAIN: Final[tuple[dict[str, str], ...]] = ({},)
CUDA_GRAPHS: Final = ({"enable_cuda_graph": "1"}, *CUDA_PLAIN)
"""Fails for graphs whose launches ONNX Runtime cannot record; retried without."""
NO_FALLBACK: Final = "session.disable_cpu_ep_fallback"
REFUSED: Final = "assigned to the default CPU EP"
"""Words of ONNX Runtime's message."""
MEBIBYTE: Final = 1 << 20

ort.disable_telemetry_events()  # some builds send telemetry


class Graph(Struct, frozen=True):
    """A graph's file for CPUs, and how its form for CUDA is made; None: the file serves both."""

    file: Path
    for_cuda: Callable[[], bytes] | None = None


def open_session(
    graph: Graph,
    provider: Provider,
    threads: int,
    *,
    fixed_shapes: bool = False,
    device: CudaDevice = FIRST_DEVICE,
) -> ort.InferenceSession:
    """Open a graph with ``threads`` intra-op threads on the CPU.

    A CUDA session computes every node on the device, or is not opened. With ``fixed_shapes`` (see
    ``io_binding``), it records and replays its launches.

    Raises:
        ProviderError: CUDA was requested, but the session does not use it.
    """
    has_cuda, reason = (
        CUDA in ort.get_available_providers(),
        "this build of ONNX Runtime has no CUDA",
    )
    if provider is not Provider.CPU and has_cuda:
        preload_libraries()
        session, reason = _on_cuda(graph, threads, device, fixed_shapes=fixed_shapes)
        if session is not None:
            return session
    if provider is Provider.CUDA:
        raise ProviderError(
            f"RAPPORT_PROVIDER=cuda, but {graph.file.name} does not run on CUDA ({reason}). "
            "Install the `gpu` extra instead of `cpu` (both together hide CUDA) and check the "
            "driver with nvidia-smi, or set RAPPORT_PROVIDER=auto."
        )
    if provider is Provider.AUTO and has_cuda:
        log.error("provider.fallback", asked=provider.value, in_use="cpu", reason=reason)
    return ort.InferenceSession(graph.file, session_options(threads), providers=[CPU_PROVIDER])


def session_options(threads: int) -> ort.SessionOptions:
    """The options of all sessions."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


@cache
def preload_libraries() -> None:
    """Load CUDA and cuDNN from their wheels (the extra ``gpu``), before the first session."""
    ort.preload_dlls()


def _on_cuda(
    graph: Graph, threads: int, device: CudaDevice, *, fixed_shapes: bool
) -> tuple[ort.InferenceSession | None, str]:
    """A session that computes all of its nodes with CUDA, or the reason why there is none."""
    session, reason = None, ""
    try:
        source = graph.file if graph.for_cuda is None else graph.for_cuda()
    except (ImportError, ValueError) as problem:  # no package onnx; a graph of another kind
        return None, str(problem)
    for more in CUDA_GRAPHS if fixed_shapes else CUDA_PLAIN:
        try:
            session = cuda_session(source, session_options(threads), device, more)
        except Exception as problem:  # noqa: BLE001  # its errors have no common base class
            reason = _reason(problem)
            if more:
                log.warning("provider.no_cuda_graphs", reason=reason)
        else:
            break
    if session is not None and provider_in_use(session) is not Provider.CUDA:
        return None, "its CUDA libraries or the driver cannot be loaded"
    return session, reason


def _reason(problem: Exception) -> str:
    words = str(problem).splitlines()[0]
    if REFUSED not in words:
        return words
    return (
        "nodes of the graph would be computed by the CPU: CUDA's libraries or the driver cannot be "
        "loaded, or an operator has no CUDA kernel"
    )


def cuda_session(
    source: Path | bytes,
    options: ort.SessionOptions,
    device: CudaDevice = FIRST_DEVICE,
    more: Mapping[str, str] = MappingProxyType({}),
) -> ort.InferenceSession:
    """A session on CUDA alone: ONNX Runtime refuses it if a node would run on the CPU."""
    options.add_session_config_entry(NO_FALLBACK, "1")
    cuda = {"device_id": str(device.number), **more}
    if device.memory_mb is not None:
        cuda["gpu_mem_limit"] = str(device.memory_mb * MEBIBYTE)
    return ort.InferenceSession(
        source,
        options,
        providers=[(CUDA, cuda)],
        enable_fallback=0,  # otherwise it prints a message and continues without CUDA
    )


def provider_in_use(session: ort.InferenceSession) -> Provider:
    """The provider that the session uses."""
    first = session.get_providers()[0]
    return Provider.CUDA if first == CUDA else Provider.CPU
