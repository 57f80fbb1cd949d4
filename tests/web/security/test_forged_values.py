"""Forged values are rejected and never cause an internal error."""

import base64
import json

import pytest

from stream_app.store.stream.repository import Store
from tests.web.people.conftest import As

EARLY, LATE = "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"


def forged(*values: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("path", "cursor"),
    [
        ("/sessions?order=id&", forged("id", "\ud800")),
        ("/sessions?order=risk&", forged("risk", 0.5, "\udfff")),
        ("/sessions?order=start&", forged("start", EARLY, "x")),
        ("/alerts?", forged("alerts", LATE, "x")),
        ("/speakers?", forged("counsellors", "\ud800")),
    ],
)
def test_a_forged_cursor_is_refused(filled: Store, as_: As, path: str, cursor: str) -> None:
    assert as_("pat").get(f"/api/v1{path}cursor={cursor}").status_code == 400


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/api/v1/history?started_from={EARLY.replace('+', '%2B')}", 422),
        (f"/api/v1/exports/sessions?started_before={LATE}", 422),
        (f"/alerts?cursor={forged('alerts', EARLY, 'x')}", 404),
        ("/sessions/north-0/turns/99999999999999999999", 422),
        ("/sessions/north-0/turns/-1", 422),
        ("/sessions/north-0?page=99999999999999999999", 422),
        ("/sessions/%00", 422),
        ("/sessions/%00/card", 422),
        ("/alerts/%00", 422),
        ("/?team=%00", 422),
        ("/counsellors/%00", 422),
    ],
)
def test_impossible_values_are_refused(filled: Store, as_: As, path: str, status: int) -> None:
    assert as_("pat").get(path).status_code == status
