import gc
import logging
import os
import secrets
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest
from hypothesis import settings
from pydantic import SecretStr

from servers import kafka, postgres
from stream_app.worker.kafka import broker
from tests import training
from tests.e2e.service import Service
from tests.store import compiled_statements, databases

NewService = Callable[..., Service]
SLOW: Final = tuple(Path(__file__).parent / name for name in ("e2e", "web/browser"))
"""Whole services and browsers: half of the time of all tests."""
WITHOUT_NIGHTLY: Final = "slow and not nightly"
"""The expression of `make test-slow`."""
SERVED: Final = frozenset({"changes", "cluster", "new_service", "own_topics"})
"""Fixtures that differ with `--services`."""
LONGEST: Final = (
    *("chaos/test_chaos.py", "test_wheel.py", "e2e/test_stream_equals_batch.py"),
    *("web/api/test_document.py", "e2e/test_rolling_upgrade.py", "benchmarks/test_quick_runs.py"),
    *("analytics/test_coverage.py", "web/api/test_roles.py", "web/api/test_live.py"),
    *("e2e/test_framed_topics.py", "e2e/test_withdrawal.py", "analytics/test_killed_archive.py"),
    *("core/test_stream_equals_batch.py", "adaptation/test_adapt.py"),
    *("export/test_bundle.py", "export/test_heads.py", "models/test_masked_language.py"),
    *("models/test_distil.py", "models/test_multitrait.py", "models/test_encoder_option.py"),
)
"""Files that start first, so that no process is left with one of them at the end."""


settings.register_profile("many", max_examples=2_000)  # make properties


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--services",
        action="store_true",
        help="run the service on Apache Kafka and PostgreSQL instead of the embedded parts",
    )


def pytest_report_header() -> str | None:
    if training.is_available():
        return None
    return "torch is not installed: the tests of models/ and export/ run with `make test-models`"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no files of which `make test` or `make test-slow` runs no test."""
    chosen = config.option.markexpr
    if not collection_path.match("test_*.py") or chosen not in (WITHOUT_NIGHTLY, "not slow"):
        return None
    whole = _is_slow(collection_path)
    if chosen == "not slow":
        return whole or None
    return None if whole or "mark.slow" in collection_path.read_text("utf-8") else True


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected lives until the end: do not look for garbage among it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _is_slow(file: Path) -> bool:
    return any(folder in file.parents for folder in SLOW)


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if _is_slow(item.path):
            item.add_marker(pytest.mark.slow)
        slow = item.get_closest_marker("slow")
        if slow and _uses_services(item) and not config.getoption("--services"):
            item.add_marker(pytest.mark.nightly)  # `make test-services` runs it, too
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
    if config.getoption("--services"):
        same = [item for item in items if not _uses_services(item)]
        config.hook.pytest_deselected(items=same)
        items[:] = filter(_uses_services, items)
        return
    for item in items:
        if item.get_closest_marker("services"):
            item.add_marker(pytest.mark.skip(reason="runs with --services: make test-services"))


def _uses_services(item: pytest.Item) -> bool:
    """Whether it is another test with `--services`; the others run without it, too."""
    fixtures: list[str] = getattr(item, "fixturenames", [])
    return not SERVED.isdisjoint(fixtures) or item.get_closest_marker("services") is not None


@pytest.fixture(scope="session", autouse=True)
def _shared_compiled_statements() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        compiled_statements.share(patch)
        yield


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    folder = postgres.binaries()
    if folder is None:
        _missing("PostgreSQL's server (initdb, postgres) is not installed")
    running = postgres.Server(folder, {"autovacuum": "off"}, parent=_memory())
    yield running
    running.remove()


def _memory() -> Path | None:
    """The file system in memory, if it has room: a database of each test is copied from 8 MB."""
    folder = Path("/dev/shm")
    roomy = folder.is_dir() and shutil.disk_usage(folder).free > 4 * 2**30
    return folder if roomy else None


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka.Cluster]:
    try:
        cluster = kafka.Cluster(tmp_path_factory.mktemp("kafka"))
    except kafka.KafkaMissing as problem:
        _missing(str(problem))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def embedded_broker() -> Iterator[str]:
    """host:port of one broker for all tests, which use separate names (`own_names`)."""
    with broker.running() as address:
        yield address


def own_names() -> dict[str, str]:
    """Settings of topics and a consumer group that no other test uses."""
    name = f"test-{secrets.token_hex(4)}"
    return {"topic_prefix": name, "kafka_group": name}


def _missing(what: str) -> NoReturn:
    """Skip the test; in CI, where every server must be available, fail it."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}, and CI is set", pytrace=False)
    pytest.skip(what)


@pytest.fixture
def new_service(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[NewService]:
    """Starts the service and stops it after the test; ``--services`` selects the real servers."""
    made: list[Service] = []

    def new(**changes: Any) -> Service:
        if request.config.getoption("--services"):
            changes = {
                "kafka_brokers": request.getfixturevalue("cluster").address,
                "database_url": SecretStr(databases.postgresql(request.getfixturevalue("server"))),
                **own_names(),
                **changes,
            }
        elif "kafka_brokers" not in changes:
            shared = request.getfixturevalue("embedded_broker")
            changes = {"kafka_brokers": shared, **own_names(), **changes}
        made.append(Service(tmp_path, **changes))
        return made[-1]

    yield new
    for service in made:
        service.close()


@pytest.fixture
def service(new_service: NewService) -> Service:
    return new_service()


@pytest.fixture
def log_settings_kept() -> object:
    """Restores the logging configuration after commands that run in this process."""
    root = logging.getLogger()
    handlers, level, disabled = root.handlers[:], root.level, logging.root.manager.disable
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.disable(disabled)
