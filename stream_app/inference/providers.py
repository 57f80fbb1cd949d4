"""Which ONNX Runtime execution provider runs, said loudly.

``get_available_providers`` lists what was compiled in, not what works: only the session's own
answer counts.
"""

from enum import Enum
from pathlib import Path

import onnxruntime as ort
import structlog

from stream_app.errors import ProviderError

log = structlog.get_logger(__name__)

ort.disable_telemetry_events()  # some builds report home; nothing leaves this process


class Provider(Enum):
    """What was asked for; ``auto`` takes CUDA where it really runs, else the CPU."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


def open_session(graph: Path, provider: Provider, threads: int) -> ort.InferenceSession:
    """Open a graph; ``threads`` intra-op threads on the CPU.

    Raises:
        ProviderError: CUDA was asked for and the session does not run on it.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    wanted = ["CPUExecutionProvider"]
    if provider is not Provider.CPU and "CUDAExecutionProvider" in ort.get_available_providers():
        if hasattr(ort, "preload_dlls"):
            ort.preload_dlls()
        wanted.insert(0, "CUDAExecutionProvider")
    session = ort.InferenceSession(graph, options, providers=wanted)
    in_use = provider_in_use(session)
    if provider is Provider.CUDA and in_use is not Provider.CUDA:
        raise ProviderError(
            "RAPPORT_PROVIDER=cuda, but ONNX Runtime runs on the CPU. Install the `gpu` extra "
            "instead of `cpu` (both together hide CUDA) and check the driver with nvidia-smi, or "
            "set RAPPORT_PROVIDER=auto."
        )
    if len(wanted) > 1 and in_use is Provider.CPU:
        log.warning("provider.fallback", asked=provider.value, in_use=in_use.value)
    return session


def provider_in_use(session: ort.InferenceSession) -> Provider:
    """The provider that the session really runs on."""
    first = session.get_providers()[0]
    return Provider.CUDA if first == "CUDAExecutionProvider" else Provider.CPU
