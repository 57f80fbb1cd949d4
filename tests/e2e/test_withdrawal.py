"""A withdrawal of consent through a real worker and a real console, with each setting."""

from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from stream_app.cli import app
from stream_app.core.session.consent import OnWithdrawal
from stream_app.processes.child_processes import environment
from stream_app.store.accounts import audit
from stream_app.store.database import tables
from tests.conftest import NewService
from tests.e2e.service import Service
from tests.store.batches import consent, end, turn
from tests.web.api.test_live import open_stream
from tests.web.server import Web

GONE, KEPT = "withdrawn", "kept"
LETTER = f'{{"type": "turn", "session_id": "{GONE}", "text": "no role"}}'.encode()


def turns(first: int, last: int) -> list[bytes]:
    return [
        turn(seq, session_id=name, speaker_id=f"{name}/{seq % 2}", consent=seq == 0 or None)
        for seq in range(first, last)
        for name in (GONE, KEPT)
    ]


class World:
    """A worker and a console; the session is in progress, and one of its events is refused."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._markers = 0
        self.web = Web(
            service.folder,
            service.settings.kafka_brokers,
            {
                name: getattr(service.settings, name)
                for name in ("topic_prefix", "kafka_group", "topic_partitions", "database_url")
            },
        )

    def begin(self) -> None:
        """Start both processes, and send the first half of two sessions."""
        service = self.service
        self.web.start()
        service.start_worker()
        service.wait_for(lambda: self.get("/me").json()["live"], "the topics are read")
        with open_stream(self.web) as stream:
            self.began = stream.first_id
        service.send([*turns(0, 6), LETTER])
        service.wait_for(lambda: service.count(tables.turns) == 12, "the turns are stored")
        self.wait_for_live(lambda events: {"turn", "session"} <= self.kinds(events, GONE))

    def get(self, path: str, name: str = "sue", **parameters: Any) -> Any:
        with self.web.client(name) as client:
            return client.get(path, params=parameters)

    def status(self, path: str, name: str = "sue") -> int:
        return int(self.get(path, name).status_code)

    def withdraw(self) -> None:
        """Withdraw the consent, and let both sessions continue."""
        withdrawal = consent("withdrawn", session_id=GONE, version="1")
        self.service.send([withdrawal, *turns(6, 8)])
        self.service.wait_for(lambda: self.of(KEPT, tables.turns) == 8, "the other one continues")

    def of(self, session_id: str, table: Any) -> int:
        return sum(row["session_id"] == session_id for row in self.service.rows(table))

    def live(self) -> list[Any]:
        """All live events since the start that the console would send to a new client."""
        self._markers += 1
        name = f"marker {self._markers}"
        self.service.send([turn(session_id=name)])
        with open_stream(self.web, last_id=self.began) as stream:
            return stream.until(lambda event: (event.data or {}).get("session_id") == name)

    def kinds(self, events: list[Any], session_id: str) -> set[str]:
        return {event.event for event in events if event.data.get("session_id") == session_id}

    def wait_for_live(self, condition: Any) -> None:
        self.service.wait_for(lambda: condition(self.live()), "live events")

    def rapport(self, *arguments: str) -> str:
        done = CliRunner().invoke(app, arguments, env=environment(self.service.settings))
        assert done.exit_code == 0, done.output
        return done.output


@pytest.fixture
def world(
    request: pytest.FixtureRequest, new_service: NewService, log_settings_kept: object
) -> Iterator[World]:
    made = World(new_service(on_withdrawal=request.param))
    try:
        made.begin()
        yield made
    finally:
        made.web.stop()


@pytest.mark.parametrize("world", [OnWithdrawal.KEEP], indirect=True)
def test_kept_data_can_be_read_and_later_turns_are_withheld(world: World) -> None:
    world.withdraw()
    [row] = [row for row in world.service.rows(tables.sessions) if row["session_id"] == GONE]
    assert (row["withdrawn"], row["hidden"], row["consent"]) == (True, False, False)
    assert world.of(GONE, tables.turns) == 6
    for path in ("", "/turns", "/consents"):
        assert world.status(f"/sessions/{GONE}{path}") == 200
    world.service.send([end(session_id=GONE)])
    world.wait_for_live(lambda events: "closed" in repr(events))
    assert {"session", "turn"} <= world.kinds(world.live(), GONE)


@pytest.mark.parametrize("world", [OnWithdrawal.HIDE], indirect=True)
def test_hidden_data_cannot_be_read_until_consent_is_renewed(world: World) -> None:
    world.withdraw()
    [row] = [row for row in world.service.rows(tables.sessions) if row["session_id"] == GONE]
    assert (row["withdrawn"], row["hidden"], row["consent"]) == (True, True, False)
    assert world.of(GONE, tables.turns) == 6
    for path in ("", "/turns", "/history", "/feedback"):
        assert world.status(f"/sessions/{GONE}{path}") == 404
    assert world.status(f"/sessions/{GONE}/consents") == 200
    for path in ("/sessions", "/alerts", "/exports/turns"):
        assert GONE not in world.get(path).text
    assert world.kinds(world.live(), GONE) == set()
    world.service.send([end(session_id=GONE)])
    assert world.kinds(world.live(), GONE) == set()

    renewed = consent("given", session_id=GONE, version="2", occurred_at="2026-01-05T12:30:00Z")
    world.service.send([renewed])
    world.wait_for_live(lambda events: "session" in world.kinds(events, GONE))
    assert world.status(f"/sessions/{GONE}/turns") == 200


@pytest.mark.parametrize("world", [OnWithdrawal.ERASE], indirect=True)
def test_an_erased_session_leaves_a_receipt_and_no_dead_letters(world: World) -> None:
    assert GONE in world.rapport("dead-letters", "list") or world.rapport("dead-letters", "count")
    world.withdraw()
    service = world.service

    def receipts() -> list[Any]:
        return [row["receipt"] for row in service.rows(tables.erasure_receipts)]

    service.wait_for(lambda: receipts() and all(receipts()), "the receipt is complete")
    assert [
        table.name
        for table in tables.metadata.sorted_tables
        if "session_id" in table.c and world.of(GONE, table)
    ] == []
    assert [row["unfinished"] for row in service.rows(tables.erasure_receipts)] == [None]
    for path in ("", "/turns", "/consents"):
        assert world.status(f"/sessions/{GONE}{path}") == 404
    assert world.kinds(world.live(), GONE) == set()
    assert world.rapport("dead-letters", "list") == ""
    printed = world.rapport("erase", "--session", GONE, "--receipt")
    assert "       6  turns\n" in printed
    done, _, not_reached = printed.partition("Not reached:")
    assert "keys: 1 destroyed" in done
    assert "1 dead letters withdrawn" in done
    assert f"{service.settings.turns_topic}: the original events" in not_reached
    [entry] = [e for e in audit.latest(world.web.store) if e.action == "erase"]
    assert (entry.person, entry.detail) == (audit.WORKER, "consent withdrawn: 1 sessions, 6 turns")
    service.send([turn(9, session_id=GONE), consent("given", session_id=GONE, version="9")])
    assert world.kinds(world.live(), GONE) == set()
    assert world.of(GONE, tables.sessions) == 0
