"""SIGTERM: the batch in progress is finished, or else left for the next worker."""

import signal

import pytest
from pydantic import SecretStr

from servers.postgres import Server
from stream_app.store.database import tables
from tests.chaos.proxy import Proxy
from tests.conftest import NewService
from tests.store.batches import turn


def test_a_worker_without_a_database_stops_soon_and_loses_nothing(
    new_service: NewService, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue("server")
    proxy = Proxy("127.0.0.1", server.port)
    try:
        url = server.new_database().replace(f":{server.port}/", f":{proxy.port}/")
        service = new_service(database_url=SecretStr(url), topic_partitions=1)
        worker = service.start_worker()
        service.send([turn(0)])
        service.wait_for(lambda: service.count(tables.turns) == 1, "the first turn is stored")
        proxy.refusing = True
        proxy.cut()
        service.send([turn(seq) for seq in range(1, 9)])
        log = service.folder / "worker.log"
        service.wait_for(
            lambda: log.read_text("utf-8").count("attempt=3") > 0,
            "the worker waits for the database",
        )
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 1
        proxy.refusing = False
        service.start_worker()
        service.wait_for(lambda: service.count(tables.turns) == 9, "no turn is lost")
    finally:
        proxy.close()
