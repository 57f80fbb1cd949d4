"""Texts in forms at their limits: refused with a status, never an error of the server."""

import pytest

from tests.web.people.conftest import As

LEVELS = {"seq": "1", "explorations": "1"}
GOAL = {"measure": "explorations", "starts_on": "2026-01-05", "ends_on": "2026-03-30"}
DISPUTE = {"seq": "1", "head": "explorations"}
NEEDED = (
    ("pat", "/counsellors/abcdef0123/goals", "goal", GOAL),
    ("olu", "/sessions/north-0/dispute", "note", DISPUTE),
    ("pat", "/disputes/none", "answer", {"decision": "upheld"}),
    ("pat", "/alerts/none/note", "note", {}),
)
OPTIONAL = (
    ("pat", "/sessions/north-0/turn-rating", "comment", LEVELS),
    ("pat", "/sessions/north-0/session-rating", "comment", {"rating": "4"}),
    ("pat", "/reviews/none/comments", "comment", {"seq": "1"}),
    ("pat", "/alerts/none/acknowledge", "note", {"reason": "justified"}),
    ("pat", "/alerts/none/resolve", "note", {}),
    ("pat", "/alerts/none/judge", "note", {"judgement": "justified"}),
    ("pat", "/alerts/none/mute", "reason", {"what": "session", "minutes": "5"}),
)


def test_texts_that_are_too_long_or_cannot_be_stored_are_refused(as_: As) -> None:
    for name, path, field, others in (*NEEDED, *OPTIONAL):
        for text in ("x" * 4001, "a\x00b"):
            answer = as_(name).post(path, data={**others, field: text})
            assert answer.status_code == 422, (path, text[:3])


@pytest.mark.parametrize(("name", "path", "field", "others"), NEEDED)
def test_a_blank_text_is_refused_where_one_is_needed(
    as_: As, name: str, path: str, field: str, others: dict[str, str]
) -> None:
    assert as_(name).post(path, data={**others, field: " \n "}).status_code == 422


def test_blanks_around_a_text_do_not_count(as_: As) -> None:
    padded = " " * 3000 + "x" * 3999 + "\n"
    for name, path, field, others in (*NEEDED, *OPTIONAL[:-1]):
        answer = as_(name).post(path, data={**others, field: padded})
        assert answer.status_code in (204, 303, 404), (path, answer.status_code)
