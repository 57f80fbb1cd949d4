"""Reads of scores, alerts and the audit, and refused attempts, are in the audit trail."""

from itertools import pairwise

import pytest
from fastapi import Request

from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.database.audit_chain import verify
from stream_app.store.stream.repository import Store
from stream_app.web.http import unknown_senders
from stream_app.web.http.unknown_senders import UnknownSenders
from stream_app.work import access_log
from stream_app.work.access_log import AccessLog
from tests.store.batches import BUNDLE
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
        ("ben", "/teams", "read statistics", None, "teams"),
        ("ana", "/analytics", "read statistics", None, "analytics"),
        ("noor", "/me", "read statistics", None, "own page"),
        ("noor", "/me/development", "read statistics", None, "own development"),
        ("ben", "/calibration", "read statistics", None, "calibration"),
        ("ben", "/disputes", "read scores", None, "disputes"),
        ("ben", "/reviews", "read scores", None, "reviews"),
        ("ben", "/sessions/north-0/reviews", "read scores", "north-0", "reviews"),
        ("ana", "/reviews/agreement", "read statistics", None, "agreement of reviews"),
        ("noor", "/api/v1/goals", "read statistics", None, "goals"),
        ("ana", f"/api/v1/agreement?bundle={BUNDLE}", "read statistics", None, "agreement"),
        ("ana", "/api/v1/samples", "read statistics", None, "calibration"),
        ("ben", "/api/v1/speakers", "read statistics", None, "list of counsellors"),
        ("ana", "/api/v1/alerts/precision", "read statistics", None, "precision of rules"),
        ("ben", "/api/v1/mutes", "read alerts", None, "mutes"),
        ("ben", "/api/v1/disputes?session=north-0", "read scores", "north-0", "disputes"),
        ("ben", "/api/v1/ratings?session=north-0", "read scores", "north-0", "ratings"),
        ("ben", "/api/v1/sessions/north-0/consents", "read records", "north-0", "consents"),
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


def test_a_mistyped_session_and_a_page_without_sign_in_are_not_recorded(
    filled: Store, as_: As
) -> None:
    assert as_("sam").get("/api/v1/sessions/nothing").status_code == 404
    assert as_("").get("/teams").status_code == 303
    assert trail(filled) == []


TOKEN = "rapport_Ab3dSecretSecretSecretSecretSecretSecret012"


@pytest.mark.parametrize("path", ["/api/v1/sessions", "/api/v1/sessions/north-0", "/teams"])
def test_a_request_without_a_valid_token_is_recorded_without_the_token(
    filled: Store, as_: As, path: str
) -> None:
    for _ in range(3):
        answer = as_("").get(path, headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == (303 if path == "/teams" else 401)
    [(person, action, session_id, detail)] = trail(filled)
    assert (person, action, session_id) == ("(not signed in)", "refused", None)
    assert detail is not None
    assert detail.startswith("401 GET ")
    assert detail.endswith(" from 127.0.0.1, token rapport_Ab3d…")
    assert "Secret" not in detail
    assert "north-0" not in detail


def test_a_flood_of_invalid_tokens_leaves_a_bounded_number_of_entries(filled: Store) -> None:
    now = 0.0
    log = UnknownSenders(filled, lambda: now)

    def flood() -> int:
        before = len(trail(filled))
        for number in range(200):
            log.record(refused_request(f"10.0.{number // 20}.1", f"rapport_{number:04}{'s' * 39}"))
            log.record(refused_request("10.1.0.1", f"rapport_{number:04x}{'s' * 39}"))
        return len(trail(filled)) - before

    assert flood() == unknown_senders.IN_ALL
    from_one = [entry for entry in trail(filled) if "from 10.1.0.1," in str(entry)]
    assert 0 < len(from_one) <= unknown_senders.PER_ADDRESS
    now = unknown_senders.SECONDS - 1
    assert flood() == 0
    now = unknown_senders.SECONDS
    assert flood() == unknown_senders.IN_ALL


def refused_request(address: str, token: str) -> Request:
    headers = [(b"authorization", f"Bearer {token}".encode())]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers}
    return Request({**scope, "client": (address, 1)})


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
