"""Which ONNX Runtime execution provider runs, said loudly.

``get_available_providers`` lists what was compiled in, not what works: only the session's own
answer counts.
"""

from enum import Enum
from functools import cache
from pathlib import Path
from typing import Final

import onnxruntime as ort
import structlog

from stream_app.errors import ProviderError

log = structlog.get_logger(__name__)

CUDA: Final = "CUDAExecutionProvider"
CUDA_PLAIN: Final[tuple[dict[str, str], ...]] = ({},)
CUDA_GRAPHS: Final = ({"enable_cuda_graph": "1"}, *CUDA_PLAIN)
"""Refused for a graph that ONNX Runtime cannot place on the device as a whole: then without."""

ort.disable_telemetry_events()  # some builds report home; nothing leaves this process


class Provider(Enum):
    """What was asked for; ``auto`` takes CUDA where it really runs, else the CPU."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


def open_session(
    graph: Path, provider: Provider, threads: int, *, fixed_shapes: bool = False
) -> ort.InferenceSession:
    """Open a graph; ``threads`` intra-op threads on the CPU.

    With ``fixed_shapes`` (see ``bound``) a session on CUDA records its launches and replays them.

    Raises:
        ProviderError: CUDA was asked for and the session does not run on it.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    has_cuda, reason = CUDA in ort.get_available_providers(), "this ONNX Runtime has no CUDA in it"
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
    """A session that really runs on CUDA, or the reason why there is none."""
    try:
        session = ort.InferenceSession(
            graph,
            options,
            providers=[(CUDA, cuda), "CPUExecutionProvider"],
            enable_fallback=0,  # else it prints, and goes on without CUDA
        )
    except Exception as problem:  # noqa: BLE001  # its errors have no base class but this
        reason = str(problem).splitlines()[0]
        if cuda:
            log.warning("provider.no_cuda_graphs", reason=reason)
        return None, reason
    if provider_in_use(session) is not Provider.CUDA:
        return None, "its CUDA libraries or the driver cannot be loaded"
    return session, ""


def provider_in_use(session: ort.InferenceSession) -> Provider:
    """The provider that the session really runs on."""
    first = session.get_providers()[0]
    return Provider.CUDA if first == CUDA else Provider.CPU
