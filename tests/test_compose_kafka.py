"""The broker of the compose file, run from the same variables without a container.

The class that turns variables into a configuration in the image ``apache/kafka`` is part of Kafka's
jars; only hosts, ports and folders are replaced.
"""

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from pydantic import SecretStr

from servers import kafka
from stream_app.errors import BrokerUnavailable
from stream_app.settings import Settings
from stream_app.worker.kafka.broker import die_with_parent, free_port
from stream_app.worker.kafka.topics import client_options, declare_topics

pytestmark = [pytest.mark.services, pytest.mark.timeout(240)]

ROOT = Path(__file__).parents[1]
PASSWORD = "p@ss:w/rd+Zanzibar"
PATIENCE = 90.0


class Broker(NamedTuple):
    port: int
    folder: Path
    jars: Path
    process: "subprocess.Popen[bytes]"

    def java(self, *arguments: str) -> list[str]:
        return ["java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-cp", f"{self.jars}/*", *arguments]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))


@pytest.fixture(scope="module")
def broker(compose: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    try:
        jars = kafka.jars()
    except kafka.KafkaMissing as problem:
        pytest.skip(str(problem))
    folder = tmp_path_factory.mktemp("compose")
    for name in ("secrets", "config", "data"):
        (folder / name).mkdir()
    (folder / "secrets" / "kafka_password").write_text(PASSWORD, "utf-8")
    port, controller = free_port(), free_port()
    variables = {
        name: here(str(value), folder)
        .replace("CLIENTS://:9092", f"CLIENTS://127.0.0.1:{port}")
        .replace("kafka:9092", f"127.0.0.1:{port}")
        .replace("9093", str(controller))
        for name, value in compose["services"]["kafka"]["environment"].items()
    }
    variables["CLUSTER_ID"] = kafka.CLUSTER_ID
    mounted = ROOT / "servers" / "compose"
    run = ["java", "-Xmx384m", "-cp", f"{jars}/*"]
    setup = ["kafka.docker.KafkaDockerWrapper", "setup"]
    (folder / "defaults").mkdir()
    folders = {"default": folder / "defaults", "mounted": mounted, "final": folder / "config"}
    options = [f"--{name}-configs-dir={path}" for name, path in folders.items()]
    with (folder / "log").open("wb") as log:
        subprocess.run(
            [*run, *setup, *options],
            env={**os.environ, **variables},
            check=True,
            stdout=log,
            stderr=log,
        )
    configured = folder / "config"
    written = yaml.safe_load((configured / "log4j2.yaml").read_text("utf-8"))
    assert written["Configuration"]["Appenders"].keys() == {"Console"}
    assert PASSWORD not in (configured / "server.properties").read_text("utf-8")
    logging = f"-Dlog4j2.configurationFile={configured / 'log4j2.yaml'}"
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [*run[:2], logging, *run[2:], "kafka.Kafka", str(configured / "server.properties")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent,  # noqa: PLW1509
        )
    running = Broker(port, folder, jars, process)
    try:
        end = time.monotonic() + PATIENCE
        while (found := healthy(running)).returncode:
            assert process.poll() is None, (folder / "log").read_text("utf-8")[-2000:]
            assert time.monotonic() < end, found.stdout + found.stderr
        yield running
    finally:
        process.kill()
        process.wait()


def here(value: str, folder: Path) -> str:
    """A value as the container gets it, with this test's folders."""
    value = value.replace("$$", "$").replace("/run/secrets", str(folder / "secrets"))
    value = value.replace("/etc/rapport", str(ROOT / "servers" / "compose"))
    return value.replace("/var/lib/kafka/data", str(folder / "data"))


def healthy(broker: Broker) -> "subprocess.CompletedProcess[str]":
    """Sign in with the file that the health check uses; its own program is not in these jars."""
    file = broker.folder / "client.properties"
    mounted = ROOT / "servers" / "compose" / "kafka-client.properties"
    file.write_text(here(mounted.read_text("utf-8"), broker.folder), "utf-8")
    address = f"127.0.0.1:{broker.port}"
    options = ("--bootstrap-server", address, "--command-config", str(file))
    asked = ("--describe", "--entity-type", "brokers", "--entity-name", "1")
    return subprocess.run(
        broker.java("kafka.admin.ConfigCommand", *options, *asked),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def settings(compose: dict[str, Any], broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings of the worker's container."""
    (broker.folder / "secrets" / "database_password").write_text("unused", "utf-8")
    for name, value in compose["services"]["worker"]["environment"].items():
        if value is not None and not value.startswith("${"):  # None: passed on if set
            monkeypatch.setenv(name, here(value, broker.folder))
    monkeypatch.setenv("RAPPORT_KAFKA_BROKERS", f"127.0.0.1:{broker.port}")
    return Settings()


async def send(options: dict[str, Any], topic: str) -> int:
    producer = AIOKafkaProducer(**options, request_timeout_ms=8000)
    try:  # "async with" would not stop a producer that was refused when it started
        await producer.start()
        return (await producer.send_and_wait(topic, b"{}")).offset
    finally:
        await producer.stop()


def test_the_containers_sign_in_with_the_password_file(settings: Settings) -> None:
    asyncio.run(declare_topics(settings))
    assert asyncio.run(send(client_options(settings), settings.turns_topic)) == 0


def test_another_password_is_refused(settings: Settings) -> None:
    other = settings.model_copy(update={"kafka_password": SecretStr("other")})
    with pytest.raises(BrokerUnavailable):
        asyncio.run(declare_topics(other))


def test_a_client_without_a_password_is_refused(settings: Settings) -> None:
    with pytest.raises(KafkaError):
        asyncio.run(send({"bootstrap_servers": settings.kafka_brokers}, settings.turns_topic))


def test_the_password_is_not_logged(broker: Broker) -> None:
    assert PASSWORD not in (broker.folder / "log").read_text("utf-8", "replace")


def test_the_broker_writes_only_its_data(broker: Broker) -> None:
    """Its root file system is read-only: the image's folder of logs stays unused."""
    opened = set()
    for file in Path(f"/proc/{broker.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            opened.add(str(file.readlink()))
    files = {name for name in opened if name.startswith("/") and not name.endswith(".jar")}
    writable = {name for name in files if name.startswith(str(broker.folder))}
    allowed = (str(broker.folder / "data"), str(broker.folder / "log"))
    assert writable
    assert all(name.startswith(allowed) for name in writable)
