"""Invalid and unusual events are handled as documented and do not affect later ones."""

import asyncio
import json
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from stream_app.store.database import tables
from stream_app.worker.kafka.topics import client_options
from tests.conftest import NewService
from tests.e2e.service import Service

SECRET = "zanzibar"


def turn(**changes: Any) -> bytes:
    event = {
        "type": "turn",
        "session_id": "s",
        "seq": 0,
        "speaker_id": "c",
        "role": "client",
        "text": "I have not slept for a week.",
        "occurred_at": "2026-01-05T10:00:00Z",
        "consent": True,
    }
    return json.dumps({**event, **changes}).encode()


BAD = {
    b"": "not-json",
    b"zanzibar {": "not-json",
    b'"zanzibar"': "schema",
    b"[1, 2]": "schema",
    turn(seq="zanzibar"): "schema",
    turn(seq=-1): "schema",
    turn(seq=2**31): "schema",
    turn(text=7): "schema",
    turn(text=""): "empty-text",
    turn(text=" \n\t "): "empty-text",
    turn(text="zanz\x00ibar"): "nul-byte",
    turn(text="zanzibar").replace(b"zanzibar", b"zanz\xff\xfeibar"): "not-utf-8",
    turn(text="zanzibar").replace(b"zanzibar", rb"zanz\ud83dibar"): "lone-surrogate",
    turn(text="zanzibar " * 10_000): "too-large",
    turn(role="zanzibar"): "schema",
    turn(type="zanzibar"): "schema",
    turn(session_id="z" * 10_000): "schema",
    turn(occurred_at="2026-01-05T10:00:00"): "schema",
    turn(occurred_at="zanzibar"): "schema",
    turn(occurred_at="9999-12-31T23:59:30Z"): "implausible-time",
    turn(occurred_at="0001-01-01T00:00:00Z"): "implausible-time",
    turn(audio="zanzibar"): "media",
    json.dumps({"type": "turn", "session_id": "s"}).encode(): "schema",
}


def test_invalid_events_are_dead_lettered_with_bytes_and_a_reason_without_text(
    service: Service,
) -> None:
    service.start_worker()
    log = [turn()]
    for seq, bad in enumerate(BAD, 1):
        log += [bad, turn(seq=seq, role="counsellor" if seq % 2 else "client")]
    service.send(log)
    service.wait_for(lambda: service.count(tables.turns) == len(BAD) + 1, "good turns are stored")
    letters = {
        record.value: (json.loads(dict(record.headers)["rapport-dead-letter"]), record)
        for record in service.messages(service.settings.dead_letter_topic)
    }
    assert {value: letter["reason"] for value, (letter, _) in letters.items()} == BAD
    for letter, _ in letters.values():
        assert SECRET not in json.dumps(letter)
        assert letter["topic"] == service.settings.turns_topic
        assert letter["offset"] >= 0
    assert SECRET not in (service.folder / "worker.log").read_text("utf-8")
    scored = [row["seq"] for row in service.rows(tables.turn_scores) if row["stage"] == "final"]
    assert sorted(scored) == list(range(len(BAD) - 2))


def test_ten_megabytes_of_text_are_dead_lettered_in_full(service: Service) -> None:
    service.start_worker()
    huge = turn(seq=1, text="zanzibar " * 1_200_000)
    asyncio.run(send_huge(service, [turn(), huge, turn(seq=1)]))
    service.wait_for(lambda: service.count(tables.turns) == 2, "the next turn is stored")
    [record] = service.messages(service.settings.dead_letter_topic)
    letter = json.loads(dict(record.headers)["rapport-dead-letter"])
    assert (letter["reason"], letter["size"]) == ("too-large", len(huge))
    assert record.value == huge


async def send_huge(service: Service, values: list[bytes]) -> None:
    options = client_options(service.settings)
    async with AIOKafkaProducer(**options, max_request_size=2**25) as producer:
        for value in values:
            await producer.send_and_wait(service.settings.turns_topic, value, key=b"s")


def test_seq_backwards_conflict_and_turn_after_the_end(service: Service) -> None:
    service.start_worker()
    end = json.dumps(
        {"type": "session_end", "session_id": "s", "occurred_at": "2026-01-05T11:00:00Z"}
    ).encode()
    log = [turn(seq=0), turn(seq=1, role="agent"), turn(seq=0), turn(seq=1, text="Something else.")]
    log += [turn(seq=2), end, turn(seq=2)]
    log += [turn(seq=3, occurred_at="2026-01-05T11:00:01Z"), turn(session_id="next")]
    service.send(log)
    service.wait_for(
        lambda: {row["session_id"] for row in service.rows(tables.turns)} == {"s", "next"},
        "the next session is stored",
    )
    reasons = sorted(
        json.loads(dict(record.headers)["rapport-dead-letter"])["reason"]
        for record in service.messages(service.settings.dead_letter_topic)
    )
    assert reasons == ["after-end", "conflicting-duplicate"]
    assert [r["seq"] for r in service.rows(tables.turns) if r["session_id"] == "s"] == [0, 1, 2]


@pytest.mark.nightly
def test_five_thousand_turns_in_one_session(new_service: NewService) -> None:
    service = new_service(batch_max=1000)
    service.start_worker()
    roles = ("client", "counsellor")
    service.send([turn(seq=n, role=roles[n % 2], text=f"Well, {n}.") for n in range(5000)])
    service.wait_for(lambda: service.count(tables.turns) == 5000, "all turns are stored")
    [session] = service.rows(tables.session_scores)
    assert session["turns"] == 5000
    assert session["counsellor_turns"] == 2500
    [state] = service.rows(tables.session_states)
    assert len(state["state"]) < 40_000


def test_turns_without_consent_leave_no_text(service: Service) -> None:
    service.start_worker()
    service.send(
        [
            turn(session_id="no", consent=None, text=SECRET),
            turn(session_id="refused", consent=False, text=SECRET),
            turn(session_id="yes", text="Gladly."),
        ]
    )
    service.wait_for(lambda: service.count(tables.session_scores) == 3, "all events are counted")
    assert [row["session_id"] for row in service.rows(tables.turns)] == ["yes"]
    assert {row["session_id"] for row in service.rows(tables.turn_scores)} == {"yes"}
    withheld = {
        row["session_id"]: row["withheld_turns"] for row in service.rows(tables.session_scores)
    }
    assert withheld == {"no": 1, "refused": 1, "yes": 0}
