"""The database equals the output of ``rapport score`` for the same events."""

import json
from typing import Any

import pytest
from pydantic import SecretStr

from stream_app.contracts.scores import SessionStatus
from stream_app.store.database import tables
from tests.conftest import NewService
from tests.e2e.service import Service, differences, scored_offline, stored
from tests.store import databases


def all_ended(service: Service, sessions: int) -> bool:
    open_ones = [row for row in service.rows(tables.session_scores) if row["status"] == "open"]
    return service.count(tables.session_scores) == sessions and not open_ones


def sessions_in(log: list[bytes]) -> int:
    ended = [value for value in log if b'"session_end"' in value]
    return len({json.loads(value)["session_id"] for value in ended})


def test_database_equals_the_offline_run(service: Service, sample_log: list[bytes]) -> None:
    service.start_worker()
    service.send(sample_log)
    service.wait_for(lambda: all_ended(service, sessions_in(sample_log)), "all sessions ended")
    found = stored(service)
    for batch in (1, 50):
        offline = scored_offline(service.settings, sample_log, batch)
        assert len(offline) > 1700
        assert differences(offline, found) == []


def test_sessions_without_an_end_are_flushed_when_the_log_is_read(new_service: NewService) -> None:
    service = new_service(idle_timeout=1.0)
    log = [
        json.dumps(
            {
                "type": "turn",
                "session_id": f"open-{session}",
                "seq": seq,
                "speaker_id": "s",
                "role": "seeker" if seq % 2 == 0 else "supporter",
                "text": f"This is what I say at {seq}, and how do you feel about it?",
                "occurred_at": f"2024-05-01T10:{seq:02}:00+02:00",
                "consent": True,
            }
        ).encode()
        for seq in range(9)
        for session in range(3)
    ]
    service.start_worker()
    service.send(log)
    service.wait_for(
        lambda: (
            [row["status"] for row in service.rows(tables.session_scores)]
            == [SessionStatus.IDLE.value] * 3
        ),
        "all sessions are flushed",
    )
    assert differences(scored_offline(service.settings, log, 256), stored(service)) == []


@pytest.mark.parametrize(
    "database", [pytest.param("default", marks=pytest.mark.nightly), "postgresql"]
)
def test_a_kill_during_processing_changes_no_row(
    new_service: NewService, sample_log: list[bytes], database: str, request: pytest.FixtureRequest
) -> None:
    changes: dict[str, Any] = {"batch_max": 16}
    if database == "postgresql":
        changes["database_url"] = SecretStr(databases.postgresql(request.getfixturevalue("server")))
    service = new_service(**changes)
    first = service.start_worker()
    service.send(sample_log)
    service.wait_for(lambda: service.count(tables.turns) > 100, "some turns are stored")
    service.kill(first)
    between = service.count(tables.turns)
    service.start_worker()
    service.wait_for(lambda: all_ended(service, sessions_in(sample_log)), "all sessions ended")
    assert 100 < between < service.count(tables.turns)
    offline = scored_offline(service.settings, sample_log, 256)
    assert differences(offline, stored(service)) == []


def test_two_workers_share_the_log_and_one_takes_over_from_the_other(
    new_service: NewService, sample_log: list[bytes]
) -> None:
    service = new_service(batch_max=16)
    workers = [service.start_worker(), service.start_worker()]
    service.send(sample_log[: len(sample_log) // 2])
    service.wait_for(lambda: service.count(tables.turns) > 50, "some turns are stored")
    service.kill(workers[0])
    service.send(sample_log[len(sample_log) // 2 :])
    service.wait_for(lambda: all_ended(service, sessions_in(sample_log)), "all sessions ended")
    offline = scored_offline(service.settings, sample_log, 256)
    assert differences(offline, stored(service)) == []


def test_published_messages_equal_the_rows(service: Service, sample_log: list[bytes]) -> None:
    service.start_worker()
    service.send(sample_log)
    service.wait_for(lambda: all_ended(service, sessions_in(sample_log)), "all sessions ended")
    service.wait_for(lambda: service.count(tables.outbox) == 0, "the outbox is empty")
    published = {
        (body["session_id"], body["seq"], body["stage"])
        for record in service.messages(service.settings.turn_score_topic)
        if (body := json.loads(record.value))["type"] == "turn_score"
    }
    rows = {(r["session_id"], r["seq"], r["stage"]) for r in service.rows(tables.turn_scores)}
    assert published == rows
    topics = service.settings
    for topic, kind in (
        (topics.turn_score_topic, b"rapport.turn_score"),
        (topics.session_score_topic, b"rapport.session_score"),
        (topics.alert_topic, b"rapport.alert"),
    ):
        assert {dict(r.headers)["ce_type"] for r in service.messages(topic)} == {kind}
    alerts = {
        json.loads(r.value)["alert_id"] for r in service.messages(service.settings.alert_topic)
    }
    assert alerts == {row["alert_id"] for row in service.rows(tables.alerts)}
