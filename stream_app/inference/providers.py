"""Opens ONNX Runtime sessions and checks which execution provider they use.

``get_available_providers`` lists compiled-in providers, not working ones, so the session is asked.
"""

from functools import cache
from pathlib import Path
from typing import Final

import onnxruntime as ort
import structlog

from stream_app.errors import ProviderError
from stream_app.inference.provider_choice import Provider

log = structlog.get_logger(__name__)

CUDA: Final = "CUDAExecutionProvider"
CUDA_PLAIN: Final[tuple[dict[str, str], ...]] = ({},)
CUDA_GRAPHS: Final = ({"enable_cuda_graph": "1"}, *CUDA_PLAIN)
"""Fails for graphs that ONNX Runtime cannot place on the device entirely; retried without."""

ort.disable_telemetry_events()  # some builds send telemetry


def open_session(
    graph: Path, provider: Provider, threads: int, *, fixed_shapes: bool = False
) -> ort.InferenceSession:
    """Open a graph with ``threads`` intra-op threads on the CPU.

    With ``fixed_shapes`` (see ``io_binding``), CUDA sessions record and replay their launches.

    Raises:
        ProviderError: CUDA was requested, but the session does not use it.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    has_cuda, reason = (
        CUDA in ort.get_available_providers(),
        "this build of ONNX Runtime has no CUDA",
    )
    if provider is not Provider.CPU and has_cuda:
        preload_libraries()
        for cuda in CUDA_GRAPHS if fixed_shapes else CUDA_PLAIN:
            session, reason = _on_cuda(graph, options, cuda)
            if session is not None:
                return session
    if provider is Provider.CUDA:
        raise ProviderError(
            f"RAPPORT_PROVIDER=cuda, but ONNX Runtime runs on the CPU ({reason}). Install the "
            "`gpu` extra instead of `cpu` (both together hide CUDA) and check the driver with "
            "nvidia-smi, or set RAPPORT_PROVIDER=auto."
        )
    if provider is Provider.AUTO and has_cuda:
        log.error("provider.fallback", asked=provider.value, in_use="cpu", reason=reason)
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


@cache
def preload_libraries() -> None:
    """Load CUDA and cuDNN from their wheels (the extra ``gpu``), before the first session."""
    ort.preload_dlls()


def _on_cuda(
    graph: Path, options: ort.SessionOptions, cuda: dict[str, str]
) -> tuple[ort.InferenceSession | None, str]:
    """A session that uses CUDA, or the reason for failure."""
    try:
        session = ort.InferenceSession(
            graph,
            options,
            providers=[(CUDA, cuda), "CPUExecutionProvider"],
            enable_fallback=0,  # otherwise it prints a message and continues without CUDA
        )
    except Exception as problem:  # noqa: BLE001  # its errors have no common base class
        reason = str(problem).splitlines()[0]
        if cuda:
            log.warning("provider.no_cuda_graphs", reason=reason)
        return None, reason
    if provider_in_use(session) is not Provider.CUDA:
        return None, "its CUDA libraries or the driver cannot be loaded"
    return session, ""


def provider_in_use(session: ort.InferenceSession) -> Provider:
    """The provider that the session uses."""
    first = session.get_providers()[0]
    return Provider.CUDA if first == CUDA else Provider.CPU
