"""Reads of scores, alerts and the audit, and refused attempts, are in the audit trail."""

from itertools import pairwise

import pytest

from stream_app.store import audit
from stream_app.store.audit import AuditAction
from stream_app.store.audit_chain import verify
from stream_app.store.repository import Store
from stream_app.web import access_log
from stream_app.web.access_log import AccessLog
from tests.web.people.conftest import As

Entry = tuple[str, str, str | None, str | None]


def trail(store: Store) -> list[Entry]:
    found = audit.latest(store)
    return [(e.person, e.action, e.session_id, e.detail) for e in reversed(found)]


@pytest.mark.parametrize(
    ("name", "path", "action", "session_id", "detail"),
    [
        ("ana", "/api/v1/sessions", "read scores", None, "list of sessions"),
        ("ana", "/api/v1/history", "read scores", None, "list of sessions"),
        ("ana", "/api/v1/sessions/north-0", "read scores", "north-0", "session"),
        ("ana", "/api/v1/sessions/north-0/turns", "read scores", "north-0", "turns"),
        ("ben", "/api/v1/sessions/north-0/turns", "read transcript", "north-0", "api"),
        ("ana", "/api/v1/sessions/north-0/history", "read scores", "north-0", "history"),
        ("ana", "/api/v1/alerts", "read alerts", None, "list of alerts"),
        ("ada", "/api/v1/audit", "read audit", None, "audit trail"),
        ("ben", "/", "read scores", None, "wall"),
        ("ben", "/sessions", "read scores", None, "list of sessions"),
        ("ben", "/alerts", "read alerts", None, "inbox"),
    ],
)
def test_a_read_is_recorded(
    filled: Store,
    as_: As,
    name: str,
    path: str,
    action: str,
    session_id: str | None,
    detail: str,
) -> None:
    before = len(trail(filled))
    assert as_(name).get(path).status_code == 200
    assert trail(filled)[before:] == [(name, action, session_id, detail)]


def test_one_alert_is_recorded_with_its_session(filled: Store, as_: As) -> None:
    [alert, *_] = as_("sue").get("/api/v1/alerts").json()["items"]
    for path in ("/api/v1/alerts/", "/alerts/"):
        assert as_("sue").get(path + alert["episode_id"]).status_code == 200
    entry = ("sue", "read alerts", alert["session_id"], "alert")
    assert [each for each in trail(filled) if each[3] == "alert"] == [entry]


@pytest.mark.parametrize(
    ("name", "path", "session_id", "detail"),
    [
        ("ana", "/api/v1/audit", None, "403 GET /api/v1/audit"),
        ("ada", "/alerts", None, "403 GET /alerts"),
        ("sam", "/api/v1/sessions/north-0", "north-0", "404 GET /api/v1/sessions/{session_id}"),
        ("sam", "/sessions/north-0", "north-0", "404 GET /sessions/{session_id}"),
        (
            "sam",
            "/sessions/north-0/turns/1",
            "north-0",
            "404 GET /sessions/{session_id}/turns/{seq}",
        ),
    ],
)
def test_a_refused_attempt_is_recorded(
    filled: Store, as_: As, name: str, path: str, session_id: str | None, detail: str
) -> None:
    assert as_(name).get(path).status_code == int(detail[:3])
    [(who, action, about, what)] = trail(filled)
    assert (who, action, about) == (name, "refused", session_id)
    assert what == detail


def test_a_mistyped_session_and_requests_without_sign_in_are_not_recorded(
    filled: Store, as_: As
) -> None:
    assert as_("sam").get("/api/v1/sessions/nothing").status_code == 404
    assert as_("").get("/api/v1/sessions").status_code == 401
    assert trail(filled) == []


def test_polling_is_recorded_once_in_ten_minutes(filled: Store) -> None:
    now = 0.0
    log = AccessLog(filled, lambda: now)
    for seconds in (0, 5, 599, 601, 700, 1202):
        now = float(seconds)
        log.record("sue", AuditAction.READ_SCORES, "wall")
    assert len(trail(filled)) == 3
    log.record("sue", AuditAction.READ_SCORES, "wall", "north-0")
    log.record("ben", AuditAction.READ_SCORES, "wall")
    assert len(trail(filled)) == 5


def test_what_is_remembered_is_bounded(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_log, "MAX_REMEMBERED", 3)
    log = AccessLog(filled, lambda: 0.0)
    for number in range(6):
        log.record(f"p{number}", AuditAction.READ_SCORES, "wall")
    assert len(log._recorded) <= 3


def test_the_chain_of_everything_recorded_is_intact(filled: Store, as_: As) -> None:
    for name in ("sue", "ana", "ada"):
        for path in ("/api/v1/sessions", "/api/v1/alerts", "/api/v1/audit", "/teams"):
            as_(name).get(path)
    checked = verify(filled)
    assert checked.faults == []
    assert checked.entries == len(trail(filled)) > 6
    times = [entry.at for entry in audit.latest(filled)]
    assert all(later >= earlier for later, earlier in pairwise(times))
