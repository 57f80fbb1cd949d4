"""Events without numbers, and idempotency keys: what is in the log after retries and crashes."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiokafka.errors import KafkaTimeoutError
from pydantic import SecretStr

from stream_app.errors import BrokerUnavailable
from stream_app.store.accounts.people import IngestScope, People
from stream_app.store.database import tables
from stream_app.store.stream import ingest_keys
from tests.fakes import edit
from tests.store import databases
from tests.store.batches import end, process, turn
from tests.store.reading import rows
from tests.web.api.topic import Topic
from tests.web.in_process import InProcessWeb


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessWeb]:
    running = InProcessWeb(tmp_path_factory.mktemp("ingest"))
    running.start()
    yield running
    running.stop()


@dataclass
class Sender:
    """Sends turns without numbers of one session."""

    web: InProcessWeb
    session: str
    key: str | None = None
    token: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def turns(self, *texts: str, **changes: Any) -> list[bytes]:
        return [unnumbered(session_id=self.session, text=text, **changes) for text in texts]

    def post(self, *events: bytes) -> httpx.Response:
        headers = {"Content-Type": "application/json"}
        if self.key is not None:
            headers["Idempotency-Key"] = self.key
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        with self.web.client("pump") as client:
            body = b"[" + b",".join(events) + b"]"
            return client.post("/events", content=body, headers=headers)

    def numbers(self, *texts: str) -> list[int | None]:
        answer = self.post(*self.turns(*texts))
        assert answer.status_code == 202, answer.text
        return [result["seq"] for result in answer.json()["results"]]


def unnumbered(**changes: Any) -> bytes:
    event = json.loads(turn(**changes))
    del event["seq"]
    return json.dumps(event).encode()


def test_turns_get_numbers_and_are_otherwise_unchanged(web: InProcessWeb, topic: Topic) -> None:
    sender = Sender(web, "plain")
    raw = unnumbered(session_id="plain", text="Grüße \u2028  a", extra={"x": [1]})
    answer = sender.post(raw, end(session_id="plain"), b'{"type":"turn"}', raw)
    results = answer.json()["results"]
    assert [(r["accepted"], r["seq"], r["code"]) for r in results] == [
        (True, 0, None),
        (True, None, None),
        (False, None, "schema"),
        (True, 1, None),
    ]
    assert sender.numbers("again") == [2]
    sent = topic.of("plain")
    assert [json.loads(value).get("seq") for value in sent] == [0, None, 1, 2]
    assert sent[0] == b'{"seq":0,' + raw[1:]
    assert sent[1] == end(session_id="plain")


def test_turns_of_a_batch_are_numbered_by_their_time(web: InProcessWeb, topic: Topic) -> None:
    sender = Sender(web, "times")

    def at(minute: int) -> bytes:
        when = f"2026-01-05T10:{minute:02}:00Z"
        return unnumbered(session_id="times", text=str(minute), occurred_at=when)

    batch = [at(3), at(1), at(1), edit("times", seq=0), at(2), at(0), end(session_id="times")]
    results = sender.post(*batch).json()["results"]
    assert [result["seq"] for result in results] == [2, 0, 1, None, 4, 3, None]
    sent = [json.loads(value) for value in topic.of("times")]
    assert [each.get("text") for each in sent] == [
        *["1", "1", "3"],
        "I mean this at 0.",
        *["0", "2"],
        None,
    ]


def test_an_event_is_too_large_with_its_number(web: InProcessWeb, topic: Topic) -> None:
    raw = unnumbered(session_id="large", text="")
    fits = 64 * 1024 - len(raw) - len('"seq":2147483647,')
    sender = Sender(web, "large")
    results = sender.post(*sender.turns("x" * fits, "x" * (fits + 1))).json()["results"]
    assert [(result["seq"], result["code"]) for result in results] == [
        (0, None),
        (None, "too-large"),
    ]


def test_mixing_numbers_is_refused_in_words(web: InProcessWeb, topic: Topic) -> None:
    own = Sender(web, "own")
    answer = own.post(turn(5, session_id="own"), *own.turns("hello"), turn(6, session_id="own"))
    results = answer.json()["results"]
    assert [result["code"] for result in results] == [None, "numbered-by-producer", None]
    assert "send seq" in results[1]["detail"]
    assert [result["seq"] for result in results] == [5, None, 6]
    ours = Sender(web, "ours")
    assert ours.numbers("hello") == [0]
    [result] = ours.post(turn(1, session_id="ours")).json()["results"]
    assert result["code"] == "numbered-by-gateway"
    assert [len(topic.of(name)) for name in ("own", "ours")] == [2, 1]


def test_the_place_of_a_refused_turn_is_sent_without_its_text(
    web: InProcessWeb, topic: Topic
) -> None:
    sender = Sender(web, "gap")
    empty, odd = turn(1, session_id="gap", text=" "), turn(2, session_id="gap", role="zanzibar")
    results = sender.post(turn(0, session_id="gap"), empty, odd, odd).json()["results"]
    assert [result["code"] for result in results] == [None, "empty-text", "schema", "schema"]
    assert [json.loads(value) for value in topic.of("gap")[1:]] == [
        {"type": "turn", "session_id": "gap", "seq": seq, "text": ""} for seq in (1, 2)
    ]
    assert sender.post(turn(3, session_id="gap", text="")).status_code == 422
    assert len(topic.of("gap")) == 4
    first = Sender(web, "image first")
    assert first.post(turn(0, session_id="image first", text="")).status_code == 422
    assert len(topic.of("image first")) == 1


def test_gaps_are_closed_only_in_the_senders_own_sessions(web: InProcessWeb, topic: Topic) -> None:
    people = People(web.store)
    assert Sender(web, "counted").numbers("one") == [0]
    Sender(web, "counted").post(turn(1, session_id="counted", text=""))
    assert len(topic.of("counted")) == 1, "web processes number it"
    Sender(web, "of others").post(turn(0, session_id="of others"))
    limited = people.create_token("pump", "gaps", sends=IngestScope(team="north"))
    for session in ("of others", "of nobody"):
        Sender(web, session, token=limited).post(turn(1, session_id=session, text=""))
    assert [len(topic.of(name)) for name in ("of others", "of nobody")] == [1, 0]


def test_a_gap_that_cannot_be_closed_changes_no_answer(web: InProcessWeb, topic: Topic) -> None:
    topic.problem = BrokerUnavailable("gone")
    answer = Sender(web, "open gap").post(turn(0, session_id="open gap", text=""))
    assert [result["code"] for result in answer.json()["results"]] == ["empty-text"]


def test_a_repeated_request_has_the_same_answer_and_sends_nothing(
    web: InProcessWeb, topic: Topic
) -> None:
    sender = Sender(web, "repeated", key='"8e03978e-40d5-43dd"')
    events = [*sender.turns("one", "two"), b"{}", outcome_of("repeated")]
    first = sender.post(*events)
    sender.key = "8e03978e-40d5-43dd"  # the same key without quotation marks
    again = sender.post(*events)
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    assert [result["seq"] for result in again.json()["results"]] == [0, 1, None, None]
    assert len(topic.of("repeated")) == 3
    sender.key = "another"
    assert sender.numbers("three") == [2]


def outcome_of(session: str) -> bytes:
    kind = {"type": "outcome", "kind": "like", "occurred_at": "2026-01-05T11:05:00Z"}
    return json.dumps({**kind, "session_id": session}).encode()


def test_a_key_with_another_body_is_refused(web: InProcessWeb, topic: Topic) -> None:
    sender = Sender(web, "reused", key="k-reused")
    assert sender.numbers("one") == [0]
    answer = sender.post(*sender.turns("two"))
    assert answer.status_code == 422
    assert answer.json()["type"] == "urn:rapport:problem:key-reused"
    assert len(topic.of("reused")) == 1


def test_another_account_or_scope_has_keys_of_its_own(web: InProcessWeb, topic: Topic) -> None:
    people = People(web.store)
    sender = Sender(web, "keys of others", key="k-1")
    assert sender.numbers("one") == [0]
    limited = people.create_token("pump", "limited", sends=IngestScope(team="north"))
    sender.token = limited
    [result] = sender.post(*sender.turns("one")).json()["results"]
    assert result["code"] == "out-of-scope"
    [result] = sender.post(*sender.turns("one")).json()["results"]
    assert result["code"] == "out-of-scope"
    sender.token = people.create_token("pump", "renewed")
    assert sender.numbers("one") == [0], "a new token of the account repeats the request"
    assert len(topic.of("keys of others")) == 1


@pytest.mark.parametrize("key", ["", "a b", "é", '"', 'a"b', "x" * 201, '"' + "x" * 201 + '"'])
def test_a_malformed_key_is_refused(web: InProcessWeb, topic: Topic, key: str) -> None:
    sender = Sender(web, "malformed", key=key)
    with web.client("pump") as client:
        headers = [(b"idempotency-key", key.encode())]
        body = b"[" + sender.turns("one")[0] + b"]"
        assert client.post("/events", content=body, headers=headers).status_code == 422
    assert topic.of("malformed") == []


def test_two_simultaneous_requests_are_one(web: InProcessWeb, topic: Topic) -> None:
    sender = Sender(web, "twice", key="k-twice")
    events = sender.turns("one", "two", "three")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: sender.post(*events), range(8)))
    taken = [answer for answer in answers if answer.status_code == 202]
    assert taken
    assert len({answer.text for answer in taken}) == 1
    for answer in answers:
        if answer not in taken:
            assert answer.status_code == 409
            assert answer.json()["type"] == "urn:rapport:problem:key-busy"
            assert int(answer.headers["retry-after"]) in (1, 2)
    assert len(topic.of("twice")) == 3


def test_a_crash_before_or_after_kafka_adds_no_turn_when_repeated(
    web: InProcessWeb, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_keys, "BUSY_FOR", ingest_keys.BUSY_FOR * 0)
    sender = Sender(web, "crash", key="k-crash")
    events = sender.turns("one", "two")
    topic.problem = RuntimeError("the process dies before it sends")
    with pytest.raises(RuntimeError, match="before it sends"):
        sender.post(*events)
    assert topic.of("crash") == []
    sender.key = "k-other"
    topic.problem = None
    assert sender.numbers("three") == [2], "numbers of the lost request stay reserved"
    sender.key = "k-crash"
    with monkeypatch.context() as patch:
        patch.setattr(ingest_keys, "answer", die)
        with pytest.raises(RuntimeError, match="before it stores"):
            sender.post(*events)
    answer = sender.post(*events)
    assert [result["seq"] for result in answer.json()["results"]] == [0, 1]
    assert sender.post(*events).json() == answer.json()
    log = topic.of("crash")
    assert [json.loads(value)["seq"] for value in log] == [2, 0, 1, 0, 1]
    result = process([*log, end(session_id="crash")])
    assert sorted(stored.turn.seq for stored in result.turns) == [0, 1, 2]
    assert not result.dead_letters


def die(*_: object) -> None:
    raise RuntimeError("the process dies before it stores the answer")


def test_what_the_broker_refused_is_sent_again_with_the_same_numbers(
    web: InProcessWeb, topic: Topic
) -> None:
    sender = Sender(web, "refused", key="k-refused")
    events = sender.turns("one", "two")
    topic.problem = BrokerUnavailable("away")
    assert sender.post(*events).status_code == 503
    topic.problem, topic.refusals = None, [None, KafkaTimeoutError()]
    first = sender.post(*events).json()
    assert [(r["seq"], r["code"]) for r in first["results"]] == [(0, None), (1, "broker")]
    second = sender.post(*events).json()
    assert [(r["seq"], r["code"]) for r in second["results"]] == [(0, None), (1, None)]
    assert sender.post(*events).json() == second


def test_without_a_key_numbers_that_were_not_sent_are_used_again(
    web: InProcessWeb, topic: Topic
) -> None:
    sender = Sender(web, "no key")
    assert sender.numbers("one") == [0]
    topic.problem = BrokerUnavailable("away")
    assert sender.post(*sender.turns("two", "three")).status_code == 503
    topic.problem = None
    assert sender.numbers("two", "three") == [1, 2]


def test_numbers_continue_after_a_restart(tmp_path: Path, topic: Topic) -> None:
    url = SecretStr(databases.sqlite(tmp_path / "rapport.db"))
    for numbers in ([0, 1], [2, 3]):
        web = InProcessWeb(tmp_path, changes={"database_url": url})
        web.start()
        try:
            assert Sender(web, "s").numbers("one", "two") == numbers
        finally:
            web.stop()


def test_no_text_is_stored_with_numbers_and_keys(web: InProcessWeb, topic: Topic) -> None:
    sender = Sender(web, "secret", key="k-secret")
    sender.post(*sender.turns("zanzibar"), unnumbered(session_id="secret", role="zanzibar"))
    stored = [*rows(web.store, tables.ingest_keys), *rows(web.store, tables.session_numbers)]
    assert len(stored) > 1
    for word in ("zanzibar", "k-secret"):
        assert word not in str(stored)
