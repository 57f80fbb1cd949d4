"""One account can ask for so much in a time, and others are not held up by it."""

import pytest
from fastapi import HTTPException

from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.stream.repository import Store
from stream_app.web.http.rate_limits import RateLimit
from stream_app.web.services import CHECKS_AT_ONCE, EVENTS_AT_ONCE, EVENTS_PER_SECOND
from tests.web.people.conftest import As


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_allowance_is_used_up_and_grows_again() -> None:
    clock = Clock()
    limit = RateLimit(per_second=2, burst=10, clock=clock)
    limit.count("a", 8)
    limit.count("a", 8)
    with pytest.raises(HTTPException) as refused:
        limit.count("a")
    assert refused.value.status_code == 429
    assert refused.value.headers == {"Retry-After": "3"}
    limit.count("b", 8)
    clock.now = 3.5
    limit.count("a", 100)
    clock.now = 1000.0
    limit.count("a", 10)
    with pytest.raises(HTTPException):
        limit.count("a")


def test_checks_of_rules_are_limited(as_: As) -> None:
    pat, body = as_("pat"), {"text": "version: 1\nrules: []\n"}
    assert pat.post("/api/v1/rules/check", json=body).status_code == 200
    pat.app.state.services.rules_checked.count("pat", CHECKS_AT_ONCE * 4)
    refused = pat.post("/api/v1/rules/check", json=body)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) >= 1
    assert as_("sue").post("/api/v1/rules/check", json=body).status_code == 200


def test_events_are_limited_before_anything_is_stored(as_: As, filled: Store) -> None:
    for name in ("pump", "calm"):
        People(filled).add(Person(name, PersonRole.INGEST), None)
    pump, invalid = as_("pump"), [{"type": "turn"}]
    assert pump.post("/api/v1/events", json=invalid).status_code == 422
    pump.app.state.services.events_sent.count("pump", EVENTS_AT_ONCE * 2)
    refused = pump.post("/api/v1/events", json=invalid)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) >= EVENTS_AT_ONCE // EVENTS_PER_SECOND - 1
    assert as_("calm").post("/api/v1/events", json=invalid).status_code == 422
