"""Reviews: assigned by hand, answered with a scorecard, signed off; double reviews are blind."""

import re

import pytest

from stream_app.store import assignments, audit, reviews, tables
from stream_app.store.queries import alerts
from stream_app.store.queries.alerts import AlertFilter
from stream_app.store.queries.scope import ALL_SESSIONS
from stream_app.store.repository import Store
from tests.store.reading import rows, stored_rows
from tests.web.people.conftest import As

PAGE = "/sessions/north-0/reviews"
DUE = {"reviewer": "sue", "due": "2100-01-02"}
EVERY = {
    "answer-warmth": "2",
    "answer-understanding": "1",
    "answer-exploring": "0",
    "answer-answering": "2",
    "answer-listening": "1",
    "answer-agreement": "0",
}


def assigned(as_: As, **changes: str) -> str:
    """Ben assigns a review of north-0 to Sue; returns its address."""
    answer = as_("ben").post(PAGE, data={**DUE, **changes})
    assert answer.status_code == 303, answer.text
    [found] = set(re.findall(r'href="(/reviews/[0-9a-f-]{36})"', as_("sue").get("/reviews").text))
    return str(found)


def test_from_assignment_to_sign_off(as_: As, filled: Store) -> None:
    assert "My queue</a>" in as_("sue").get("/reviews").text
    page = as_("ben").get(PAGE).text
    assert re.findall(r"<option( selected)?>(\w+)</option>", page) == [
        (" selected", "ben"), ("", "pat"), ("", "sue"),
    ]  # fmt: skip
    address = assigned(as_)
    queue = as_("sue").get("/reviews").text
    assert re.search(r'My queue <span class="count">1', queue)
    assert "assigned by ben" in queue
    form = as_("sue").get(address).text
    assert "That must have been hard" in form
    filled_in = dict(re.findall(r'name="answer-([\w-]+)" value="(\d)" checked', form))
    assert filled_in, "the scores fill answers in advance"
    assert "agreement" not in filled_in, "no measure fills this one"
    some = {"answer-warmth": "2", "do": "save"}
    assert as_("sue").post(address, data=some).status_code == 303
    assert as_("sue").post(address, data={**some, "do": "sign-off"}).status_code == 422
    signed = as_("sue").post(address, data={**EVERY, "do": "sign-off"})
    assert signed.headers["location"] == "/reviews"
    assert as_("sue").post(address, data={**EVERY, "do": "save"}).status_code == 409
    after = as_("ben").get(address).text
    assert "answer-warmth" not in after
    assert "<b>throughout</b>" in after
    stored = {row["criterion"]: row for row in rows(filled, tables.review_answers)}
    assert {name: row["value"] for name, row in stored.items()} == {
        name.removeprefix("answer-"): int(value) for name, value in EVERY.items()
    }
    assert {name: str(row["auto_value"]) for name, row in stored.items()} == {
        **filled_in, "agreement": "None",
    }  # fmt: skip
    assert ("ben", "assign session", "north-0", "review by sue") in {
        (each.person, each.action, each.session_id, each.detail) for each in audit.latest(filled)
    }
    assert ("sue", "read transcript", "review") in {
        (each.person, each.action, each.detail) for each in audit.latest(filled)
    }


def test_others_see_nothing_before_sign_off(as_: As) -> None:
    address = assigned(as_)
    as_("sue").post(address, data={**EVERY, "do": "save"})
    as_("sue").post(f"{address}/comments", data={"seq": "1", "comment": "A question here?"})
    page = as_("ben").get(address).text
    assert "when sue has signed off" in page
    assert "A question here" not in page
    assert "That must have been hard" not in page
    read = as_("ben").get(f"/api/v1{address}").json()
    assert (read["visible"], read["comments"]) == (False, [])
    assert {each["value"] for each in read["criteria"]} == {None}
    assert as_("ben").post(address, data={**EVERY, "do": "save"}).status_code == 404
    for name in ("sam",):
        assert as_(name).get(address).status_code == 404
        assert as_(name).get(PAGE).status_code == 404
    for name in ("noor", "ana", "ada"):
        assert as_(name).get(address).status_code == 403


def test_comments_are_anchored_to_turns_redacted_and_encrypted(as_: As, filled: Store) -> None:
    address = assigned(as_)
    sue = as_("sue")
    words = "Call 020 7946 0958: an open question."
    answer = sue.post(f"{address}/comments", data={"seq": "3", "comment": words})
    assert answer.headers["location"] == f"{address}?page=0#turn-3"
    page = sue.get(address).text
    turn = page[page.index('id="turn-3"') : page.index('id="turn-4"')]
    assert "an open question." in turn
    assert "7946" not in page
    [row] = stored_rows(filled, tables.review_comments)
    assert "question" not in row["comment"]
    missing = sue.post(f"{address}/comments", data={"seq": "99", "comment": "x"})
    assert missing.status_code == 404
    sue.post(f"{address}/comments", data={"seq": "3", "comment": " "})
    assert rows(filled, tables.review_comments) == []


def test_an_alert_is_assigned_with_its_session(as_: As, filled: Store) -> None:
    alert = alerts.find(filled, ALL_SESSIONS, AlertFilter(session_id="north-0")).items[0]
    page = as_("ben").get(f"/alerts/{alert.episode_id}").text
    link = f"{PAGE}?alert={alert.episode_id}"
    assert f'href="{link}"' in page
    assert alert.rule in as_("ben").get(link).text
    assert as_("ben").get(f"/sessions/north-1/reviews?alert={alert.episode_id}").status_code == 404
    assigned(as_, alert=alert.episode_id)
    assert f'href="/alerts/{alert.episode_id}">alert' in as_("sue").get("/reviews").text
    wrong = {**DUE, "alert": "no-such-alert", "reviewer": "ben"}
    assert as_("ben").post(PAGE, data=wrong).status_code == 404


def test_only_supervisors_of_the_session_review_it_once(as_: As) -> None:
    assigned(as_)
    assert as_("ben").post(PAGE, data=DUE).status_code == 409
    for name in ("sam", "noor", "ana", "nobody"):
        assert as_("ben").post(PAGE, data={**DUE, "reviewer": name}).status_code == 404
    assert as_("ben").post(PAGE, data={**DUE, "scorecard": "none"}).status_code == 404


def test_a_session_without_consent_is_not_reviewed(
    as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assignments, "may_hold_people", lambda *_, **__: False)
    assert "cannot be reviewed" in as_("ben").get(PAGE).text
    assert as_("ben").post(PAGE, data=DUE).status_code == 409


def test_the_api_does_the_same(as_: As, filled: Store) -> None:
    new = {"session_id": "north-1", "reviewer": "sue", "due_at": "2100-01-02T00:00:00Z"}
    made = as_("ben").post("/api/v1/reviews", json={**new, "scorecard": "handling"})
    assert made.status_code == 201, made.text
    review_id = made.json()["review_id"]
    sue = as_("sue")
    listed = sue.get("/api/v1/reviews?reviewer=sue&signed=false").json()
    assert [each["review_id"] for each in listed] == [review_id]
    cards = sue.get("/api/v1/reviews/scorecards").json()
    assert [card["name"] for card in cards] == ["empathy", "handling"]
    path = f"/api/v1/reviews/{review_id}"
    bad = sue.put(f"{path}/answers", json={"answers": {"concern": 3}})
    assert bad.status_code == 422
    sue.put(f"{path}/comments", json={"seq": 1, "comment": "Here."})
    answers = {"concern": 2, "questions": 0, "resolution": 2}
    signed = sue.put(f"{path}/answers", json={"answers": answers, "sign_off": True}).json()
    assert signed["review"]["signed_at"] is not None
    assert signed["total"] == pytest.approx((2 * 2 + 3 * 2) / (2 * 6))
    assert [each["comment"] for each in as_("ben").get(path).json()["comments"]] == ["Here."]
    assert reviews.count_open(filled, ALL_SESSIONS, "sue") == 0
