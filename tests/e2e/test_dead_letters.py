"""Dead letters are counted, listed without text, and replayed after a fix."""

import asyncio

from typer.testing import CliRunner

from stream_app.cli import app
from stream_app.contracts.scores import DeadLetter
from stream_app.processes.child_processes import environment
from stream_app.store.database import tables
from stream_app.worker.kafka import dead_letters
from stream_app.worker.kafka.dead_letters import DeadLetterRecord, read
from tests.e2e.service import Service
from tests.store.batches import turn

SECRET = "zanzibar"


def rapport(service: Service, *arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, env=environment(service.settings))
    assert result.exit_code == 0, result.output
    return result.output


def dead_lettered(service: Service) -> list[DeadLetterRecord]:
    return asyncio.run(read(service.settings))


def test_dead_letters_are_counted_listed_and_replayed(service: Service) -> None:
    broken = [b"{zanzibar", turn(1, text=" "), b"[]"]
    worker = service.start_worker()
    service.send([turn(0), *broken, turn(0, text="zanzibar, but other words")])
    service.wait_for(lambda: len(dead_lettered(service)) == 4, "four dead letters")
    counted = rapport(service, "dead-letters", "count")
    assert [line.split() for line in counted.splitlines()][-1] == ["4", "in", "total"]
    listed = rapport(service, "dead-letters", "list")
    assert len(listed.splitlines()) == 4
    assert SECRET not in listed
    only = rapport(service, "dead-letters", "list", "--reason", "empty-text")
    assert len(only.splitlines()) == 1
    # Without a fix, a replayed event is dead-lettered again with a new offset.
    assert rapport(service, "dead-letters", "replay", "--reason", "not-json").startswith("1 sent")
    service.wait_for(lambda: len(dead_lettered(service)) == 5, "it is dead-lettered again")
    # The fix: the stored turn with the same seq is removed.
    service.kill(worker)
    with service.store.engine.begin() as connection:
        for table in reversed(tables.metadata.sorted_tables):
            if "session_id" in table.c:
                connection.execute(table.delete())
    service.start_worker()
    [conflict] = dead_letters.select(dead_lettered(service), ["conflicting-duplicate"])
    sent = rapport(service, "dead-letters", "replay", conflict.letter.dead_letter_id)
    assert sent.startswith("1 sent")
    service.wait_for(lambda: service.count(tables.turns) == 1, "the turn is stored")


def test_replay_needs_a_selection(service: Service) -> None:
    result = CliRunner().invoke(app, ["dead-letters", "replay"], env=environment(service.settings))
    assert result.exit_code == 2
    assert "--all" in result.output


def test_an_empty_topic_has_no_dead_letters(service: Service) -> None:
    counted = rapport(service, "dead-letters", "count")
    assert counted.splitlines()[-1].split() == ["0", "in", "total"]


def test_truncated_dead_letters_cannot_be_replayed() -> None:
    found = DeadLetterRecord(
        DeadLetter(
            dead_letter_id="t:0:1",
            reason="too-large",
            detail="",
            topic="t",
            partition=0,
            offset=1,
            size=9,
        ),
        b"abc",
    )
    assert not found.complete
    assert dead_letters.select([found], ["other"]) == []
