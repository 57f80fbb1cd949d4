"""Who computes a graph's nodes, from ONNX Runtime's profile of a run."""

import json
from pathlib import Path
from typing import Any

import pytest

from stream_app import bootstrap
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.devices import placement
from stream_app.inference.devices.placement import described, nodes_by_provider
from stream_app.inference.devices.provider_choice import CudaDevice, Provider
from stream_app.inference.devices.providers import Graph
from stream_app.inference.scorer import OnnxScorer, graphs
from stream_app.processes import doctor
from stream_app.settings import Settings


def test_every_node_of_a_cpu_session_is_counted_once() -> None:
    found = {
        name: nodes_by_provider(graph, Provider.CPU)
        for name, graph in graphs(bundles.load()).items()
    }
    assert found.keys() == {"encoder", "reader"}
    assert all(each.keys() == {"CPU"} and each["CPU"] > 100 for each in found.values())


class Profiled:
    """A session that profiles a run with nodes on two providers."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "profile.json"
        self.shapes: list[Any] = []

    def run(self, _outputs: Any, feeds: dict[str, Any]) -> None:
        self.shapes.append(feeds["input_ids"].shape)
        places = ["CUDAExecutionProvider"] * 3 + ["CPUExecutionProvider"]
        events = [
            {"cat": "Node", "name": f"n{i}_{kind}", "args": {"op_name": "Add", "provider": place}}
            for i, place in enumerate(places)
            for kind in ("fence_before", "kernel_time")
        ]
        self._file.write_text(json.dumps([{"cat": "Session", "name": "run"}, *events]), "utf-8")

    def end_profiling(self) -> str:
        return str(self._file)


def test_a_cuda_session_is_profiled_in_the_form_for_cuda(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    session, asked = Profiled(tmp_path), []

    def opened(source: Any, options: Any, device: CudaDevice) -> Profiled:
        asked.append((source, options.enable_profiling, device))
        return session

    monkeypatch.setattr(placement, "cuda_session", opened)
    device = CudaDevice(1)
    found = nodes_by_provider(Graph(tmp_path, lambda: b"float16"), Provider.CUDA, device)
    assert found == {"CUDA": 3, "CPU": 1}
    assert described(found) == "3 nodes on CUDA, 1 on CPU"
    assert asked == [(b"float16", True, device)]


def test_a_scorer_with_a_part_on_the_cpu_does_not_claim_to_be_on_cuda() -> None:
    scorer = OnnxScorer(bundles.load(), Provider.CPU)
    assert scorer.reader is not None
    for encoder, reader, whole in (
        (Provider.CUDA, Provider.CUDA, Provider.CUDA),
        (Provider.CUDA, Provider.CPU, Provider.CPU),
        (Provider.CPU, Provider.CPU, Provider.CPU),
    ):
        scorer.encoder.provider, scorer.reader.provider = encoder, reader
        assert scorer.providers == {"encoder": encoder, "reader": reader}
        assert scorer.provider is whole


def test_doctor_names_the_nodes_of_each_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings().model_copy(update={"provider": Provider.CPU, "cuda_memory_mb": 512})
    assert bootstrap.cuda_device(settings) == CudaDevice(memory_mb=512)
    checks = [found for found in doctor.run_checks(settings) if found.name == "provider"]
    assert checks[0].healthy
    assert "cpu is in use (cpu was requested); encoder: " in checks[0].detail
    assert "nodes on CPU; reader: " in checks[0].detail
