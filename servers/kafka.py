"""Apache Kafka on loopback: `python -m servers.kafka --brokers 3 --folder build/kafka-data`.

KRaft, one to three combined broker and controller nodes, data on disk. The server's jars are the
Maven dependencies in pom.xml, fetched once into build/kafka.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from stream_app.worker.kafka.broker import die_with_parent, free_port

REPOSITORY = Path(__file__).resolve().parents[1]
POM = Path(__file__).with_name("pom.xml")
CLUSTER_ID = "cmFwcG9ydC10ZXN0cy0wMQ"
PATIENCE = 90.0
TRIES = 3
MOST_BROKERS = 3
HEAP = "-Xmx384m"


class KafkaMissing(Exception):
    """Apache Kafka cannot be run here; the message says what is missing."""


def jars() -> Path:
    """The folder of the server's jars, fetched through Maven on first use.

    Raises:
        KafkaMissing: Java or Maven is missing, or the jars cannot be fetched.
    """
    if shutil.which("java") is None:
        raise KafkaMissing("Apache Kafka needs Java 17 or later (`java`)")
    digest = hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    folder = REPOSITORY / "build" / "kafka" / digest
    if folder.is_dir():
        return folder
    if shutil.which("mvn") is None:
        raise KafkaMissing("Apache Kafka's jars are fetched with Maven (`mvn`)")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={unfinished}/jars"]
        found = subprocess.run(
            ["mvn", "-q", "-B", "-f", POM, *goal, "-DincludeScope=runtime"],
            capture_output=True,
            text=True,
            check=False,
        )
        if found.returncode:
            raise KafkaMissing(f"Maven could not fetch Apache Kafka: {found.stdout[-500:]}")
        with suppress(OSError):  # another process may have been faster
            Path(unfinished, "jars").rename(folder)
    return folder


class PortTaken(Exception):
    """Another process has taken a port since it was chosen."""


class Security(NamedTuple):
    """Security that a node's listeners SSL and SASL_SSL demand.

    SSL demands a client certificate of the authority. SASL_SSL offers SCRAM-SHA-512 to the users,
    and OAUTHBEARER to tokens that nobody has signed (Kafka's validator for tests): only their times
    and the scope are checked.
    """

    authority: Path
    certificate: Path
    """The node's certificate, its key and then the chain, in one file."""
    users: dict[str, str]
    scope: str


class Node:
    """One server process with its own data folder."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self._cluster = cluster
        self.number = number
        self.choose_ports()
        self.folder = cluster.folder / f"node-{number}"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """host:port for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        """Whether the process is running."""
        return self._process is not None and self._process.poll() is None

    def choose_ports(self) -> None:
        """Choose ports of all listeners."""
        self.port, self.controller_port = free_port(), free_port()
        self.ssl_port, self.sasl_port = free_port(), free_port()

    def format(self) -> None:
        """Write the configuration and prepare the data folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        replicas = len(self._cluster.nodes)
        settings: dict[str, object] = {
            "node.id": self.number,
            "process.roles": "broker,controller",
            "listeners": f"PLAINTEXT://{self.address},"
            f"CONTROLLER://127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": self._cluster.voters,
            "log.dirs": self.folder / "data",
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 1000,
            "offsets.topic.num.partitions": 8,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": max(1, replicas - 1),
            "min.insync.replicas": max(1, replicas - 1),
            "message.max.bytes": 32 * 1024 * 1024,
            "replica.fetch.max.bytes": 32 * 1024 * 1024,
            "num.network.threads": 2,
            "num.io.threads": 4,
            "background.threads": 2,
            "log.cleaner.enable": "false",
        }
        if self._cluster.security is not None:
            settings |= self._secured(self._cluster.security)
        lines = [f"{name}={value}" for name, value in settings.items()]
        (self.folder / "server.properties").write_text("\n".join(lines) + "\n", "utf-8")
        if (self.folder / "data").exists():
            return
        security = self._cluster.security
        users = [
            f"--add-scram=SCRAM-SHA-512=[name={name},password={password}]"
            for name, password in (security.users if security else {}).items()
        ]
        with (self.folder / "log").open("ab") as log:
            subprocess.run(
                self._java("kafka.tools.StorageTool", "format", *users, "-t", CLUSTER_ID, "-c"),
                stdout=log,
                stderr=log,
                check=True,
            )

    def _secured(self, security: Security) -> dict[str, object]:
        """Settings of two more listeners on localhost."""
        login = "org.apache.kafka.common.security"
        plain = f"PLAINTEXT://{self.address}"
        more = f"SSL://localhost:{self.ssl_port},SASL_SSL://localhost:{self.sasl_port}"
        return {
            "listeners": f"{plain},CONTROLLER://127.0.0.1:{self.controller_port},{more}",
            "advertised.listeners": f"{plain},{more}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            "SSL:SSL,SASL_SSL:SASL_SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": security.certificate,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": security.authority,
            "listener.name.ssl.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{login}.scram."
            "ScramLoginModule required;",
            "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": f"{login}.oauthbearer."
            'OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker" '
            f'unsecuredValidatorRequiredScope="{security.scope}";',
        }

    def start(self) -> None:
        """Start the process, without waiting until it accepts connections."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._java("kafka.Kafka"),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509
            )

    def await_port(self) -> None:
        """Wait until the process listens for clients.

        Raises:
            PortTaken: it ended, because a port was not free any more.
            KafkaMissing: it ended, or does not listen in time.
        """
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up and self.running:
            if self._listens():
                return
            time.sleep(0.1)
        log = (self.folder / "log").read_text("utf-8", "replace")
        if not self.running and "Address already in use" in log:
            raise PortTaken(f"node {self.number} of Apache Kafka")
        raise KafkaMissing(f"node {self.number} of Apache Kafka does not start:\n{log[-1500:]}")

    def _listens(self) -> bool:
        """Whether this process does; another one may have the port."""
        if self._process is None:
            return False
        try:
            opened = psutil.Process(self._process.pid).net_connections("tcp")
        except psutil.Error:
            return False
        return any(
            each.laddr.port == self.port and each.status == psutil.CONN_LISTEN for each in opened
        )

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop the process; SIGKILL leaves its logs unclosed."""
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def restart(self, how: signal.Signals = signal.SIGTERM, downtime: float = 0.0) -> None:
        """Stop, wait ``downtime`` seconds, start again and wait for the listener."""
        self.stop(how)
        time.sleep(downtime)
        self.start()
        self.await_port()

    def _java(self, main: str, *arguments: str) -> list[str]:
        options = [HEAP, "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=WARN"]
        configuration = str(self.folder / "server.properties")
        return ["java", *options, "-cp", f"{self._cluster.jars}/*", main, *arguments, configuration]


class Cluster:
    """A cluster of one to three nodes."""

    def __init__(self, folder: Path, brokers: int = 1, security: Security | None = None) -> None:
        if not 1 <= brokers <= MOST_BROKERS:
            message = f"one to {MOST_BROKERS} brokers, not {brokers}"
            raise ValueError(message)
        self.jars = jars()
        self.security = security
        self.folder = folder
        self.nodes: list[Node] = []
        self.nodes = [Node(self, number) for number in range(1, brokers + 1)]

    @property
    def voters(self) -> str:
        """The controllers of the quorum."""
        return ",".join(f"{n.number}@127.0.0.1:{n.controller_port}" for n in self.nodes)

    @property
    def address(self) -> str:
        """host:port of every node, separated by commas."""
        return ",".join(node.address for node in self.nodes)

    def start(self) -> None:
        """Start all nodes and wait until they accept connections."""
        for _ in range(TRIES):
            for node in self.nodes:
                node.format()
            for node in self.nodes:
                node.start()
            try:
                for node in self.nodes:
                    node.await_port()
            except PortTaken:
                self.stop()
                for node in self.nodes:
                    node.choose_ports()
                    (node.folder / "log").unlink()  # it would explain a later failure wrongly
            else:
                return
        message = f"Apache Kafka's ports were taken by others {TRIES} times"
        raise KafkaMissing(message)

    def stop(self) -> None:
        """Stop all nodes; several by SIGKILL, as nodes without a quorum do not stop cleanly."""
        for node in self.nodes:
            node.stop(signal.SIGTERM if len(self.nodes) == 1 else signal.SIGKILL)


@contextmanager
def running(folder: Path, brokers: int = 1) -> Iterator[Cluster]:
    """Run a cluster within the `with` block; its data stays in the folder."""
    cluster = Cluster(folder, brokers)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def main() -> None:
    """Run a cluster until interrupted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--brokers", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "build" / "kafka-data")
    options = parser.parse_args()
    try:
        with running(options.folder, options.brokers) as cluster:
            print(f"Apache Kafka is running: RAPPORT_KAFKA_BROKERS={cluster.address}", flush=True)
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            signal.pause()
    except KafkaMissing as problem:
        raise SystemExit(f"error: {problem}") from problem
    except KeyboardInterrupt:
        print("stopping", flush=True)


if __name__ == "__main__":
    main()
