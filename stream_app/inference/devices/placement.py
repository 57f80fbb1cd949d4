"""Which execution provider computes a graph's nodes, from ONNX Runtime's own profile of a run.

A session names the providers that it may use, not the ones that it uses.
"""

import json
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import onnxruntime as ort

from stream_app.inference.devices.batching import padded
from stream_app.inference.devices.provider_choice import FIRST_DEVICE, CudaDevice, Provider
from stream_app.inference.devices.providers import (
    CPU_PROVIDER,
    Graph,
    cuda_session,
    session_options,
)

Opener = Callable[[ort.SessionOptions], ort.InferenceSession]


def nodes_by_provider(
    graph: Graph, provider: Provider, device: CudaDevice = FIRST_DEVICE
) -> dict[str, int]:
    """Number of nodes by provider of an encoder or a reader, as the service opens it."""
    if provider is not Provider.CUDA:
        return profiled(partial(ort.InferenceSession, graph.file, providers=[CPU_PROVIDER]))
    source = graph.file if graph.for_cuda is None else graph.for_cuda()
    return profiled(lambda options: cuda_session(source, options, device))


def profiled(opened: Opener) -> dict[str, int]:
    """Number of nodes by provider in one run of a text of one token."""
    with tempfile.TemporaryDirectory() as folder:
        options = session_options(1)
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder) / "profile")
        session = opened(options)
        session.run(None, padded([], 1, 16))
        events = json.loads(Path(session.end_profiling()).read_text("utf-8"))
    found: dict[str, int] = {}
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            place = _short(event["args"])
            found[place] = found.get(place, 0) + 1
    return found


def described(nodes: Mapping[str, int]) -> str:
    """The counts in words.

    >>> described({"CUDA": 108, "CPU": 2})
    '108 nodes on CUDA, 2 on CPU'
    """
    ordered = sorted(nodes.items(), key=lambda item: -item[1])
    parts = [f"{count} on {place}" for place, count in ordered]
    return ", ".join(parts).replace(" on", " nodes on", 1)


def _short(given: Mapping[str, Any]) -> str:
    return str(given.get("provider", "unknown")).removesuffix("ExecutionProvider")
