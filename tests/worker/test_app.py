"""The Faust app is configured so that nothing is acknowledged before it is committed."""

import asyncio
import ssl
import stat
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from faust import OAuthCredentials, SASLCredentials, SSLCredentials
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread
from faust.types import TP
from pydantic import SecretStr

from stream_app.errors import BrokerUnavailable
from stream_app.settings import SaslMechanism, SecurityProtocol, Settings
from stream_app.worker.kafka import app as faust_app
from stream_app.worker.kafka.oauth import TokenProvider
from stream_app.worker.kafka.topics import client_options
from tests.certificates import Authority

DEMANDED = {
    "broker_commit_interval": 0.5,
    "broker_session_timeout": 30.0,
    "consumer_auto_offset_reset": "earliest",
    "consumer_max_fetch_size": 1024 * 1024,
    "stream_wait_empty": True,
    "stream_publish_on_commit": False,
    "producer_acks": -1,
    "producer_linger": 0.0,
    "producer_max_batch_size": 512 * 1024,
    "producer_threaded": False,
    "topic_disable_leader": True,
    "topic_allow_declare": False,
    "table_standby_replicas": 1,
    "web_enabled": False,
    "value_serializer": "raw",
    "key_serializer": "raw",
    "processing_guarantee": "at_least_once",
}


def settings(**changes: Any) -> Settings:
    return Settings().model_copy(update=changes)


def seconds(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value


@pytest.mark.parametrize("name", DEMANDED)
async def test_the_app_has_the_required_setting(name: str) -> None:
    value = seconds(getattr(faust_app.create(settings()).conf, name))
    assert getattr(value, "value", value) == DEMANDED[name]


async def test_time_limits_of_batch_rebalance_and_poll_are_nested() -> None:
    conf = faust_app.create(settings()).conf
    rebalance, poll = seconds(conf.broker_rebalance_timeout), seconds(conf.broker_max_poll_interval)
    assert faust_app.RETRY_FOR < rebalance < poll


async def test_the_buffer_is_bounded_and_heartbeats_fit_into_the_session() -> None:
    conf = faust_app.create(settings(kafka_session_timeout=6.0)).conf
    assert 1024 <= conf.stream_buffer_maxsize <= 4096
    assert seconds(conf.broker_heartbeat_interval) * 3 < seconds(conf.broker_session_timeout) == 6.0


async def test_the_app_uses_the_configured_group_and_brokers() -> None:
    conf = faust_app.create(settings(kafka_group="g", kafka_brokers="one:1, two:2")).conf
    assert conf.id == "g"
    assert [str(url) for url in conf.broker] == ["kafka://one:1", "kafka://two:2"]
    assert conf.broker_credentials is None


async def test_fausts_data_folder_is_private_and_of_this_worker_alone() -> None:
    apps = [faust_app.create(settings()) for _ in range(2)]
    parents = [(app.conf.datadir, *app.conf.datadir.parents) for app in apps]
    own = [next(p for p in each if p.parent == Path(tempfile.gettempdir())) for each in parents]
    assert own[0] != own[1]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in own] == [0o700, 0o700]


def test_assigned_partitions_are_those_of_the_topic() -> None:
    assigned = {TP("turns", 3), TP("turns", 0), TP("other", 1)}
    app: Any = SimpleNamespace(consumer=SimpleNamespace(assignment=lambda: assigned))
    assert faust_app.assigned_partitions(app, "turns") == [0, 3]


@pytest.mark.parametrize(
    "mechanism", [each for each in SaslMechanism if each is not SaslMechanism.OAUTHBEARER]
)
@pytest.mark.parametrize("protocol", [SecurityProtocol.SASL_SSL, SecurityProtocol.SASL_PLAINTEXT])
async def test_faust_and_aiokafka_use_the_same_credentials(
    protocol: SecurityProtocol, mechanism: SaslMechanism
) -> None:
    secured = settings(
        kafka_security=protocol,
        kafka_sasl_mechanism=mechanism,
        kafka_username="u",
        kafka_password=SecretStr("p"),
    )
    credentials = faust_app.create(secured).conf.broker_credentials
    assert isinstance(credentials, SASLCredentials)
    assert (credentials.username, credentials.password) == ("u", "p")
    assert credentials.mechanism.value == mechanism.value
    assert (credentials.ssl_context is None) == (protocol is SecurityProtocol.SASL_PLAINTEXT)
    options = client_options(secured)
    assert options["sasl_mechanism"] == mechanism.value
    assert (options["sasl_plain_username"], options["sasl_plain_password"]) == ("u", "p")
    assert options["security_protocol"] == protocol.value == credentials.protocol.value
    assert ("ssl_context" in options) == (protocol is SecurityProtocol.SASL_SSL)


@pytest.mark.parametrize("protocol", [SecurityProtocol.SASL_SSL, SecurityProtocol.SASL_PLAINTEXT])
async def test_both_clients_sign_in_with_tokens(protocol: SecurityProtocol) -> None:
    secured = settings(
        kafka_security=protocol,
        kafka_sasl_mechanism=SaslMechanism.OAUTHBEARER,
        kafka_oauth_token_url="https://login.example.org/token",
        kafka_oauth_client_id="c",
        kafka_oauth_client_secret=SecretStr("s"),
    )
    credentials = faust_app.create(secured).conf.broker_credentials
    assert isinstance(credentials, OAuthCredentials)
    assert isinstance(credentials.oauth_cb, TokenProvider)
    options = client_options(secured)
    assert isinstance(options["sasl_oauth_token_provider"], TokenProvider)
    assert options["security_protocol"] == protocol.value == credentials.protocol.value


@pytest.mark.parametrize("name", ["kafka_username", "kafka_password"])
def test_a_missing_name_or_password_is_named(name: str) -> None:
    given = {"kafka_username": "u", "kafka_password": SecretStr("p"), name: None}
    with pytest.raises(BrokerUnavailable, match=f"SCRAM-SHA-512 needs RAPPORT_{name.upper()}$"):
        client_options(settings(kafka_security=SecurityProtocol.SASL_SSL, **given))


def test_client_certificates_that_cannot_be_loaded_are_a_sentence(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("one", ["rapport"], password="locked")
    _, other = authority.issue("two", ["rapport"])
    right = {"kafka_certificate_file": certificate, "kafka_key_file": key}
    secured = {"kafka_security": SecurityProtocol.SSL, "kafka_key_password": SecretStr("locked")}
    client_options(settings(**secured, **right))
    for changes, told in (
        ({"kafka_key_file": other}, "cannot be loaded: KEY_VALUES_MISMATCH"),
        ({"kafka_key_password": SecretStr("wrong")}, "cannot be loaded: "),
        ({"kafka_key_password": None}, "cannot be loaded: "),
        ({"kafka_key_file": tmp_path / "none"}, "none) cannot be loaded: No such file"),
        ({"kafka_certificate_file": None}, "KEY_FILE needs RAPPORT_KAFKA_CERTIFICATE_FILE"),
    ):
        with pytest.raises(BrokerUnavailable) as problem:
            client_options(settings(**{**secured, **right, **changes}))
        assert told in str(problem.value)
        assert "locked" not in str(problem.value)


async def test_ssl_checks_the_broker() -> None:
    secured = settings(kafka_security=SecurityProtocol.SSL)
    credentials = faust_app.create(secured).conf.broker_credentials
    assert isinstance(credentials, SSLCredentials)
    for context in (credentials.context, client_options(secured)["ssl_context"]):
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.check_hostname


def test_a_missing_ca_file_is_reported_with_its_setting(tmp_path: Path) -> None:
    with pytest.raises(BrokerUnavailable, match="RAPPORT_KAFKA_CA_FILE"):
        client_options(
            settings(kafka_security=SecurityProtocol.SSL, kafka_ca_file=tmp_path / "ca.pem")
        )


async def test_an_empty_fetch_is_answered_soon() -> None:
    app = faust_app.create(settings(kafka_session_timeout=4.0))
    thread = app.consumer._thread
    thread.thread_loop.close()  # never started, so it must be removed here
    plain = AIOKafkaConsumerThread._create_worker_consumer(thread, app.transport)
    assert (
        plain._fetch_max_wait_ms == 1500
    )  # if this fails, Faust has changed: is the override still needed?
    ours = thread._create_worker_consumer(app.transport)
    assert ours._fetch_max_wait_ms == 20
    await plain.stop()
    await ours.stop()


async def test_a_start_waits_for_no_tables() -> None:
    app = faust_app.create(settings())
    assert isinstance(app.tables, faust_app.NoTables)
    waited: list[float] = []
    tables: Any = app.tables
    tables.sleep = waited.append
    tables._update_channels, tables._recovery = AsyncMock(), SimpleNamespace(start=AsyncMock())
    await tables.on_start()
    tables._update_channels.assert_awaited_once()
    tables._recovery.start.assert_awaited_once()
    assert waited == []


async def test_a_stop_waits_for_cancelled_tasks_alone() -> None:
    worker = faust_app.RapportWorker(faust_app.create(settings()), loglevel=None)
    ended = []

    async def slow_to_end() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            ended.append(True)

    begin = time.monotonic()
    await worker._sentinel_task()
    task = asyncio.create_task(slow_to_end())
    await asyncio.sleep(0)
    task.cancel()
    await worker._sentinel_task()
    assert ended
    assert time.monotonic() - begin < 2 * faust_app.LAST_TASKS
