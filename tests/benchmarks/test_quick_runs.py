"""Minimal runs of all parts, with real processes, broker and databases."""

import sys
from contextlib import AbstractContextManager
from pathlib import Path

import onnxruntime as ort
import pytest

from benchmarks import onnx_only
from benchmarks.load import consumer_group, schedule, sustained, testbed, workload
from benchmarks.load.commits import CommitReader, CommitWriter
from benchmarks.load.consumer_group import Group
from benchmarks.options import Options
from benchmarks.parts import accelerator, latency, length, startup, window
from benchmarks.storage.open_sessions import OpenSessions
from stream_app.errors import RapportError
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.bundles.bundle import DEFAULT_BUNDLE
from stream_app.inference.devices.provider_choice import Provider
from stream_app.inference.devices.providers import CUDA
from stream_app.settings import Settings

pytestmark = [pytest.mark.slow, pytest.mark.nightly]
SMALLEST = Options(DEFAULT_BUNDLE, rounds=1, quick=True)


@pytest.fixture(scope="module")
def bed() -> testbed.Testbed:
    with testbed.opened(DEFAULT_BUNDLE, on_kafka=False) as opened:
        yield opened


def test_a_burst_and_a_steady_flow_through_a_real_worker(bed: testbed.Testbed) -> None:
    with consumer_group.workers(bed.deployment()) as workers:
        burst = workers.burst("burst", workload.turns(60))
        flow = workers.flow("flow", workload.turns(20), schedule.even(10.0, 2.0))
        memory = workers.memory()
    assert burst.turns == 60
    assert 0.0 < burst.model_cpu < burst.cpu
    assert burst.rate > 0.0
    assert flow.latency.turns == 20
    assert 0.0 < flow.latency.p50 <= flow.latency.p95 <= flow.latency.p99 <= flow.latency.worst
    assert len(flow.backlog) == 10
    assert memory > 50.0


def test_each_load_on_the_embedded_broker_has_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers: list[str] = []
    workers = consumer_group.workers

    def watched(settings: Settings, count: int) -> AbstractContextManager[Group]:
        brokers.append(settings.kafka_brokers)
        return workers(settings, count)

    monkeypatch.setattr(consumer_group, "workers", watched)
    monkeypatch.setattr(sustained, "STEPS", 1)
    monkeypatch.setattr(latency, "SHARES", (0.5,))
    [deployment] = latency.measure(SMALLEST).deployments
    assert deployment.name == "embedded, sqlite x1"
    assert [len(load.rounds) for load in deployment.loads] == [1, 1]
    assert len(brokers) == len(set(brokers)) == 4, "a burst, a try, a lone turn and a load"


def test_the_bare_onnx_sessions_are_timed_on_the_pipelines_calls() -> None:
    turns = workload.turns(40)
    calls = onnx_only.recorded(DEFAULT_BUNDLE, turns)
    encoded = sum(len(call.feeds["input_ids"]) for call in calls if "input_ids" in call.feeds)
    scored = sum(len(call.feeds["target"]) for call in calls if "target" in call.feeds)
    assert encoded == 40
    assert scored >= 40
    with onnx_only.model_processes(DEFAULT_BUNDLE, turns, count=2) as processes:
        first, second = processes.round(), processes.round()
    assert len(first) == len(second) == 2
    assert all(timed.seconds > 0.0 for timed in [*first, *second])


def test_sessions_open_before_the_start_continue_with_a_full_window(
    bed: testbed.Testbed,
) -> None:
    settings = bed.deployment()
    open_now = OpenSessions(settings, "open", 30)
    with consumer_group.workers(settings) as workers:
        burst = workers.burst("open", open_now.each_once(4), open_now.first_seq)
        again = workers.burst("open", open_now.turns(20), open_now.first_seq)
    assert (burst.turns, again.turns) == (30, 20)


def test_start_up_time_is_measured() -> None:
    found = startup.measure(SMALLEST)
    assert 0.0 < found.listening[0] <= found.ready[0]
    assert found.cpu[0] > 0.0 < found.web_cpu[0]
    assert "console: ready" in startup.table(found)


def test_a_bundle_with_more_slots_is_a_bundle(tmp_path: Path) -> None:
    folder = window.widened(DEFAULT_BUNDLE, tmp_path / "wide", window.Point(7, [], [], []))
    made = bundles.load(folder).manifest
    assert (made.window.before, made.window.after, made.head.slots) == (4, 3, window.LONGEST)


def test_the_cost_model_is_measured_on_short_and_long_turns() -> None:
    found = length.measure(SMALLEST)
    assert [item.mixture for item in found.lengths] == [False, False, True]
    assert all(item.bare[0] > 0.0 and item.ours[0] > 0.0 for item in found.lengths)
    assert "µs a token" in length.table(found)


def test_without_cuda_the_processor_alone_is_measured_and_a_sentence_says_why() -> None:
    if CUDA in ort.get_available_providers():
        pytest.skip("this ONNX Runtime has CUDA in it")
    found = accelerator.measure(SMALLEST)
    [device] = found.devices
    assert device.provider == "cpu"
    assert device.nodes["encoder"].keys() == device.nodes["reader"].keys() == {"CPU"}
    assert 0.0 < device.reader[0] < device.encoder[0] < device.head[0]
    assert 0.0 < device.alone.p50 <= device.alone.p99
    shown = accelerator.table(found)
    assert "- Not measured on an accelerator: RAPPORT_PROVIDER=cuda, but" in shown
    assert "worker" not in shown.partition("| line |")[2]


def test_accelerator_benchmarks_also_run_on_the_cpu() -> None:
    """The same code, with the CPU in place of a device."""
    found = accelerator.measured(SMALLEST, Provider.CPU, "Device 1")
    (device,) = found.devices
    assert (device.provider, len(device.encoder), len(device.head)) == ("cpu", 1, 1)
    assert 0.0 < device.encoder[0] < device.head[0]
    assert device.difference < 1e-4
    assert found.worker[0] > 0.0 < found.together[0]
    assert found.agreement is not None
    assert (found.agreement.largest, found.agreement.labels) == (0.0, 1.0)


def test_a_consumer_that_exits_is_reported_with_the_end_of_its_log(bed: testbed.Testbed) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no bundle here')"]
    with (
        pytest.raises(RapportError, match=r"(?s)a consumer ended with status 1.*no bundle here"),
        consumer_group.running(bed.topics(), [command]),
    ):
        pass


def test_commits_of_several_processes_are_read_once_by_complete_lines(tmp_path: Path) -> None:
    writer, reader = CommitWriter(tmp_path), CommitReader(tmp_path)
    writer.write([("run-1", 1.5)], 0.25)
    (tmp_path / "other.commits").write_bytes(b"[1.0,2.0,3.0,[]]\n[1.0,2.")
    found = reader.new()
    assert sorted(len(commits) for commits in found.values()) == [1, 1]
    (own,) = [commit for process, (commit,) in found.items() if process != "other"]
    assert (own.turns, own.model_cpu) == ([("run-1", 1.5)], 0.25)
    with (tmp_path / "other.commits").open("ab") as file:
        file.write(b"0,4.0,[]]\n")
    assert [commit.model_cpu for commit in reader.new()["other"]] == [4.0]
    assert not any(reader.new().values())
