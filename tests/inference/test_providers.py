"""Behaviour with working CUDA, CUDA that fails to load, and no CUDA.

No machine that runs these tests has CUDA: sessions and ONNX Runtime's lists are made up here, so
that the answers of a GPU build without a working driver, and of one with it, can be given.
"""

from typing import Any

import pytest
from structlog.testing import capture_logs

from stream_app.errors import ProviderError
from stream_app.inference.bundles.bundle import load
from stream_app.inference.devices import providers
from stream_app.inference.devices.provider_choice import CudaDevice, Provider
from stream_app.inference.devices.providers import CUDA, NO_FALLBACK, REFUSED, Graph, open_session

GRAPH = Graph(load().file("encoder.onnx"))


class Runtime:
    """A fake GPU build.

    ``works``: sessions run on CUDA; ``graphs``: CUDA graphs are supported; ``kernels``: every
    operator has one for CUDA.
    """

    def __init__(self, *, works: bool, graphs: bool = True, kernels: bool = True) -> None:
        self.works, self.graphs, self.kernels = works, graphs, kernels
        self.asked: list[Any] = []
        self.opened: list[Any] = []
        self.preloaded = 0

    def providers(self) -> list[str]:
        return [CUDA, "CPUExecutionProvider"]

    def preload_dlls(self) -> None:
        assert not self.asked, "libraries are loaded before the first session"
        self.preloaded += 1

    def open(self, graph: Any, options: Any, providers: list[Any], **how: Any) -> Any:
        self.asked.append((providers[0], how))
        self.opened.append(graph)
        first = "CPUExecutionProvider"
        if isinstance(providers[0], tuple):
            assert options.get_session_config_entry(NO_FALLBACK) == "1"
            assert len(providers) == 1, "ONNX Runtime refuses the CPU beside this entry"
            if "enable_cuda_graph" in providers[0][1] and not self.graphs:
                raise Exception("cannot use the CUDA Graph feature")  # like ONNX Runtime
            if not self.kernels:
                raise Exception(f"[ONNXRuntimeError] : 1 : FAIL : nodes {REFUSED}, but")
            first = CUDA if self.works else first
        return type("Session", (), {"get_providers": lambda _: [first]})()


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(runtime: Runtime) -> Runtime:
        monkeypatch.setattr(providers.ort, "get_available_providers", runtime.providers)
        monkeypatch.setattr(providers.ort, "preload_dlls", runtime.preload_dlls)
        monkeypatch.setattr(providers.ort, "InferenceSession", runtime.open)
        providers.preload_libraries.cache_clear()
        return runtime

    yield install
    providers.preload_libraries.cache_clear()


def test_auto_uses_the_cpu_silently_if_the_build_has_no_cuda() -> None:
    with capture_logs() as logs:
        session = open_session(GRAPH, Provider.AUTO, 1, fixed_shapes=True)
    assert providers.provider_in_use(session) is Provider.CPU
    assert logs == []


def test_cuda_sessions_use_cuda_graphs_and_disable_the_silent_fallback(
    install: Any,
) -> None:
    runtime = install(Runtime(works=True))
    with capture_logs() as logs:
        session = open_session(GRAPH, Provider.AUTO, 1, fixed_shapes=True)
    assert providers.provider_in_use(session) is Provider.CUDA
    wanted = {"device_id": "0", "enable_cuda_graph": "1"}
    assert runtime.asked == [((CUDA, wanted), {"enable_fallback": 0})]
    assert logs == []


def test_launches_are_not_recorded_for_shapes_that_change(install: Any) -> None:
    runtime = install(Runtime(works=True))
    open_session(GRAPH, Provider.CUDA, 1)
    assert [asked for asked, _ in runtime.asked] == [(CUDA, {"device_id": "0"})]


def test_a_graph_that_cannot_be_recorded_runs_on_cuda_without_cuda_graphs(install: Any) -> None:
    runtime = install(Runtime(works=True, graphs=False))
    with capture_logs() as logs:
        session = open_session(GRAPH, Provider.CUDA, 1, fixed_shapes=True)
    assert providers.provider_in_use(session) is Provider.CUDA
    assert ["enable_cuda_graph" in asked[1] for asked, _ in runtime.asked] == [True, False]
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("provider.no_cuda_graphs", "warning")
    ]


def test_auto_falls_back_with_an_error_in_the_log(install: Any) -> None:
    install(Runtime(works=False))
    with capture_logs() as logs:
        session = open_session(GRAPH, Provider.AUTO, 1, fixed_shapes=True)
    assert providers.provider_in_use(session) is Provider.CPU
    (entry,) = logs
    assert (entry["event"], entry["log_level"]) == ("provider.fallback", "error")
    assert "driver" in entry["reason"]


def test_requesting_cuda_fails_if_the_session_does_not_use_it(install: Any) -> None:
    install(Runtime(works=False))
    with (
        capture_logs() as logs,
        pytest.raises(ProviderError, match=r"driver cannot be loaded.*nvidia-smi"),
    ):
        open_session(GRAPH, Provider.CUDA, 1)
    assert logs == []


def test_libraries_are_loaded_once_before_the_first_session_and_not_for_the_cpu(
    install: Any,
) -> None:
    runtime = install(Runtime(works=True))
    open_session(GRAPH, Provider.CPU, 1)
    assert runtime.preloaded == 0
    runtime.asked.clear()
    open_session(GRAPH, Provider.CUDA, 1)
    open_session(GRAPH, Provider.CUDA, 1)
    assert runtime.preloaded == 1


def test_a_session_that_would_compute_a_node_on_the_cpu_is_refused_with_a_sentence(
    install: Any,
) -> None:
    install(Runtime(works=True, kernels=False))
    with pytest.raises(ProviderError, match=r"encoder\.onnx.*nodes.*computed by the CPU"):
        open_session(GRAPH, Provider.CUDA, 1)
    with capture_logs() as logs:
        session = open_session(GRAPH, Provider.AUTO, 1)
    assert providers.provider_in_use(session) is Provider.CPU
    assert [entry["event"] for entry in logs] == ["provider.fallback"]


def test_the_device_and_the_limit_of_its_memory_are_chosen(install: Any) -> None:
    runtime = install(Runtime(works=True))
    open_session(GRAPH, Provider.CUDA, 1, device=CudaDevice(number=3, memory_mb=2048))
    [(asked, _)] = runtime.asked
    assert asked == (CUDA, {"device_id": "3", "gpu_mem_limit": str(2 << 30)})


def test_cuda_gets_the_form_of_the_graph_that_was_made_for_it(install: Any) -> None:
    runtime = install(Runtime(works=True))
    graph = Graph(GRAPH.file, lambda: b"float16")
    open_session(graph, Provider.CUDA, 1)
    open_session(graph, Provider.CPU, 1)
    assert runtime.opened == [b"float16", GRAPH.file]


@pytest.mark.parametrize(
    "problem", [ModuleNotFoundError("No module named 'onnx'"), ValueError("not like BERT")]
)
def test_a_graph_that_has_no_form_for_cuda_is_refused(install: Any, problem: Exception) -> None:
    def fail() -> bytes:
        raise problem

    install(Runtime(works=True))
    with pytest.raises(ProviderError, match=str(problem)):
        open_session(Graph(GRAPH.file, fail), Provider.CUDA, 1)
