"""Client certificates, SCRAM and OAUTHBEARER against Apache Kafka with TLS."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from pydantic import SecretStr

from servers import kafka
from stream_app.errors import BrokerUnavailable
from stream_app.settings import SaslMechanism, SecurityProtocol, Settings
from stream_app.store.database import tables
from stream_app.worker.kafka import broker
from stream_app.worker.kafka.topics import client_options, declare_topics
from tests.certificates import Authority
from tests.commands.conftest import Rapport, rapport_process  # noqa: F401  # a fixture
from tests.conftest import NewService, own_names
from tests.store.batches import turn
from tests.worker.token_endpoint import CLIENT, SCOPE, SECRET

pytestmark = pytest.mark.services

USER, PASSWORD = "counselling", "zanzibar"
Ways = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def node(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka.Node]:
    folder = tmp_path_factory.mktemp("secured")
    certificate, key = authority.issue("node", ["localhost"])
    both = folder / "both.pem"
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    security = kafka.Security(authority.file, both, {USER: PASSWORD}, SCOPE)
    try:
        cluster = kafka.Cluster(folder, security=security)
    except kafka.KafkaMissing as problem:
        pytest.skip(str(problem))
    try:
        cluster.start()
        yield cluster.nodes[0]
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def token_url() -> Iterator[Callable[[float], str]]:
    """Starts a token endpoint whose tokens live so many seconds."""
    running: list[subprocess.Popen[str]] = []

    def start(lifetime: float) -> str:
        command = [sys.executable, "-m", "tests.worker.token_endpoint", str(lifetime)]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert running[-1].stdout is not None
        return running[-1].stdout.readline().strip()

    yield start
    for process in running:
        process.terminate()
        process.communicate(timeout=30)


@pytest.fixture(scope="module")
def ways(authority: Authority, node: kafka.Node, token_url: Callable[[float], str]) -> Ways:
    """Settings for each way to sign in."""
    certificate, key = authority.issue("client", ["rapport"], password="locked")
    tls = {"kafka_ca_file": authority.file}
    sasl = {
        **tls,
        "kafka_brokers": f"localhost:{node.sasl_port}",
        "kafka_security": SecurityProtocol.SASL_SSL,
    }
    return {
        "certificate": {
            **tls,
            "kafka_brokers": f"localhost:{node.ssl_port}",
            "kafka_security": SecurityProtocol.SSL,
            "kafka_certificate_file": certificate,
            "kafka_key_file": key,
            "kafka_key_password": SecretStr("locked"),
        },
        "scram": {
            **sasl,
            "kafka_sasl_mechanism": SaslMechanism.SCRAM_SHA_512,
            "kafka_username": USER,
            "kafka_password": SecretStr(PASSWORD),
        },
        "oauth": {
            **sasl,
            "kafka_sasl_mechanism": SaslMechanism.OAUTHBEARER,
            "kafka_oauth_token_url": token_url(600.0),
            "kafka_oauth_client_id": CLIENT,
            "kafka_oauth_client_secret": SecretStr(SECRET),
            "kafka_oauth_scope": SCOPE,
        },
    }


WAYS = ("certificate", "scram", "oauth")


@pytest.mark.parametrize("way", WAYS)
def test_a_worker_reads_and_publishes(ways: Ways, way: str, new_service: NewService) -> None:
    """Faust's consumer and producer, and aiokafka's clients of the commands."""
    service = new_service(**ways[way], **own_names())
    service.start_worker()
    service.send([turn(0)])
    service.wait_for(lambda: service.count(tables.turns) == 1, "the turn is stored")
    assert service.messages(service.settings.turn_score_topic)


def settings(**changes: Any) -> Settings:
    return Settings().model_copy(update={**own_names(), **changes})


def refused(chosen: Settings) -> str:
    """The sentence; it comes at once and not after the patience for absent brokers."""
    with pytest.raises(BrokerUnavailable) as problem:
        asyncio.run(asyncio.wait_for(declare_topics(chosen, patience=200.0), 60.0))
    assert "\n" not in str(problem.value)
    for secret in (PASSWORD, SECRET, "locked"):
        assert secret not in str(problem.value)
    return str(problem.value)


@pytest.mark.parametrize("way", WAYS)
def test_another_authority_is_refused(ways: Ways, way: str, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other").file
    told = refused(settings(**{**ways[way], "kafka_ca_file": other}))
    assert "its certificate was refused (unable to get local issuer certificate)" in told
    assert "RAPPORT_KAFKA_CA_FILE" in told


def test_another_host_name_is_refused(ways: Ways, node: kafka.Node) -> None:
    """The certificate is for localhost, not for the address."""
    told = refused(settings(**{**ways["scram"], "kafka_brokers": f"127.0.0.1:{node.sasl_port}"}))
    assert "IP address mismatch, certificate is not valid for '127.0.0.1'" in told


@pytest.mark.parametrize("which", ["none", "another authority's", "expired"])
def test_a_wrong_client_certificate_is_refused(
    ways: Ways, authority: Authority, which: str, tmp_path: Path
) -> None:
    changes: dict[str, Any] = {"kafka_key_password": None}
    changes["kafka_certificate_file"] = changes["kafka_key_file"] = None
    if which != "none":
        issuer = authority if which == "expired" else Authority(tmp_path, "other")
        certificate, key = issuer.issue("stranger", ["rapport"], days=-1.0)
        changes |= {"kafka_certificate_file": certificate, "kafka_key_file": key}
    told = refused(settings(**{**ways["certificate"], **changes}))
    assert "TLS failed (" in told
    assert "RAPPORT_KAFKA_CERTIFICATE_FILE" in told


def test_a_wrong_password_is_refused(ways: Ways) -> None:
    told = refused(settings(**{**ways["scram"], "kafka_password": SecretStr("wrong")}))
    assert f"it refused the sign-in of {USER} by SCRAM-SHA-512" in told


def test_a_mechanism_that_the_broker_lacks_is_refused(ways: Ways) -> None:
    told = refused(settings(**{**ways["scram"], "kafka_sasl_mechanism": SaslMechanism.PLAIN}))
    assert "it does not offer the SASL mechanism PLAIN" in told


def test_an_expired_token_is_refused(ways: Ways, token_url: Callable[[float], str]) -> None:
    told = refused(settings(**{**ways["oauth"], "kafka_oauth_token_url": token_url(-300.0)}))
    assert f"it refused the token of {CLIENT} (invalid_token): the token has expired" in told


def test_a_token_of_another_scope_is_refused(ways: Ways) -> None:
    told = refused(settings(**{**ways["oauth"], "kafka_oauth_scope": "elsewhere"}))
    assert f"it refused the token of {CLIENT} (insufficient_scope)" in told


def test_a_client_without_tls_is_told_so(
    ways: Ways,
    rapport_process: Rapport,  # noqa: F811
) -> None:
    done = rapport_process(
        "dead-letters", "count", RAPPORT_KAFKA_BROKERS=ways["scram"]["kafka_brokers"]
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "it closed the connection; check RAPPORT_KAFKA_SECURITY (PLAINTEXT)" in last
    assert "Traceback" not in done.stderr


async def test_a_new_token_is_fetched_for_a_connection_after_the_old_one_expired(
    ways: Ways, token_url: Callable[[float], str]
) -> None:
    """Tokens of two seconds; the second client shares the provider and signs in with a new one."""
    chosen = settings(**{**ways["oauth"], "kafka_oauth_token_url": token_url(2.0)})
    options = client_options(chosen)
    await declare_topics(chosen)
    for _ in range(2):
        async with AIOKafkaProducer(**options) as producer:
            await producer.send_and_wait(chosen.turns_topic, b"x", key=b"k")
        await asyncio.sleep(2.5)


def test_a_worker_that_does_not_declare_topics_says_why_it_ends(
    ways: Ways,
    rapport_process: Rapport,  # noqa: F811
) -> None:
    environment = {
        "RAPPORT_KAFKA_BROKERS": ways["scram"]["kafka_brokers"],
        "RAPPORT_KAFKA_SECURITY": "SASL_SSL",
        "RAPPORT_KAFKA_CA_FILE": str(ways["scram"]["kafka_ca_file"]),
        "RAPPORT_KAFKA_USERNAME": USER,
        "RAPPORT_KAFKA_PASSWORD": "wrong",
        "RAPPORT_TOPIC_PARTITIONS": "0",
    }
    done = rapport_process("worker", **environment)
    assert done.returncode == 1
    assert "it refused the sign-in of" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_an_absent_broker_is_not_taken_for_a_refusal(ways: Ways) -> None:
    away = settings(**{**ways["scram"], "kafka_brokers": f"localhost:{broker.free_port()}"})
    with pytest.raises(BrokerUnavailable, match="no Kafka broker answers at localhost"):
        asyncio.run(declare_topics(away, patience=0.0))
