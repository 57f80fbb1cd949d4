"""`rapport erase`: the session stays erased when events follow and when the log is reread."""

import json

from typer.testing import CliRunner

from stream_app.cli import app
from stream_app.processes.child_processes import environment
from stream_app.store.accounts import audit
from stream_app.store.database import tables
from tests.conftest import NewService
from tests.e2e.service import Service
from tests.store.batches import turn

ERASED, KEPT = "to-erase", "to-keep"


def turns(first: int, last: int) -> list[bytes]:
    return [
        turn(seq, session_id=name, speaker_id=f"{name}/{seq % 2}")
        for seq in range(first, last)
        for name in (ERASED, KEPT)
    ]


def erase(service: Service, *options: str) -> str:
    done = CliRunner().invoke(app, ["erase", *options], env=environment(service.settings))
    assert done.exit_code == 0, done.output
    return done.output


def stored(service: Service) -> set[str]:
    """Sessions with stored rows."""
    return {
        row["session_id"]
        for table in tables.metadata.sorted_tables
        if "session_id" in table.c
        for row in service.rows(table)
    }


def test_an_erased_session_stays_erased_when_events_follow_or_are_reread(
    new_service: NewService,
) -> None:
    service = new_service()
    worker = service.start_worker()
    service.send(turns(0, 8))
    service.wait_for(lambda: service.count(tables.turns) == 16, "the first turns are stored")

    output = erase(service, "--speaker", f"{ERASED}/0", "--yes")
    assert "1 sessions to erase; 1 of them are stored, with 8 turns" in output
    assert "       8  turns\n" in output
    assert stored(service) == {KEPT}

    service.send(turns(8, 12))
    service.wait_for(lambda: service.count(tables.turns) == 12, "the other session continues")
    assert stored(service) == {KEPT}
    service.kill(worker)

    service.settings = service.settings.model_copy(
        update={"kafka_group": f"{service.settings.kafka_group}-again"}
    )
    service.start_worker()
    service.send([turn(12, session_id=KEPT, speaker_id=f"{KEPT}/0")])
    service.wait_for(lambda: service.count(tables.turns) == 13, "the log was read again")
    assert stored(service) == {KEPT}
    [entry] = [e for e in audit.latest(service.store) if e.action == "erase"]
    assert entry.session_id is None
    assert entry.detail == "1 sessions, 8 turns"
    assert ERASED not in json.dumps(str(entry))
