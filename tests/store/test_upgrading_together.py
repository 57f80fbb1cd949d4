"""Several processes upgrade a database at once: one works, the others wait."""

import os
import subprocess
import sys
import threading
import time

import pytest

from stream_app.analytics.views import schema as reporting
from stream_app.errors import StoreUnavailable
from stream_app.processes.child_processes import environment
from stream_app.settings import Settings
from stream_app.store.stream import schema
from tests.store import databases


def test_every_upgrade_of_an_empty_database_succeeds(empty_url: str) -> None:
    run_together(empty_url, "upgrade")


def test_every_making_of_the_views_succeeds(upgraded_url: str) -> None:
    run_together(upgraded_url, "views")


def run_together(url: str, command: str) -> None:
    settings = Settings().model_copy(update={"database_url": None, **databases.keys(url)})
    environ = {**os.environ, **environment(settings), "RAPPORT_DATABASE_URL": url}
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "stream_app.cli", "db", command],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for _ in range(3)
    ]
    said = [process.communicate(timeout=120)[0].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], said
    store = databases.open_store(url)
    current, newest = schema.revisions(store)
    assert current == newest
    assert reporting.are_current(store, settings.bundle)
    store.close()


def test_one_waits_for_the_other_and_says_so_if_it_takes_too_long(upgraded_url: str) -> None:
    store, other = databases.open_store(upgraded_url), databases.open_store(upgraded_url)
    begun, waited = threading.Event(), []

    def wait() -> None:
        begun.set()
        with schema.one_at_a_time(other):
            waited.append(time.monotonic())

    with schema.one_at_a_time(store):
        with (
            pytest.raises(StoreUnavailable, match="another process has been changing the schema"),
            schema.one_at_a_time(other, patience=0.0),
        ):
            pass
        second = threading.Thread(target=wait)
        second.start()
        begun.wait(10)
        time.sleep(0.3)
        ended = time.monotonic()
    second.join(10)
    [taken] = waited
    assert taken >= ended
    for each in (store, other):
        each.close()
