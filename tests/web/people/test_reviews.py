"""Reviews: assigned by hand, answered with a scorecard, signed off; double reviews are blind."""

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from stream_app.core.rules.scorecards import Criterion, Scorecard, parse
from stream_app.findings import review_agreement
from stream_app.findings.agreement import confusion_matrix, kappa
from stream_app.settings import DEFAULT_SCORECARDS
from stream_app.store.accounts import audit
from stream_app.store.alerts import alerts
from stream_app.store.alerts.alerts import AlertFilter
from stream_app.store.database import tables
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store
from stream_app.store.work import assignments, reviews, waiting_work
from stream_app.store.work.reviews import NewReview, Origin
from tests.store.reading import rows, stored_rows
from tests.web.people.conftest import As

PAGE = "/sessions/north-0/reviews"
DUE_AT = datetime(2100, 1, 2, tzinfo=UTC)
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


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (None, "2100-01-02T23:59:59.999999+00:00"),
        ("", "2100-01-02T23:59:59.999999+00:00"),
        ("2100-01-02T14:59:59.000Z", "2100-01-02T14:59:59+00:00"),  # Tokyo
        ("2100-01-03T09:59:59.000Z", "2100-01-03T09:59:59+00:00"),  # Honolulu
    ],
)
def test_a_day_ends_where_the_person_is(
    as_: As, filled: Store, sent: str | None, stored: str
) -> None:
    assigned(as_, **({} if sent is None else {"due_at": sent}))
    [found] = rows(filled, tables.reviews)
    assert found["due_at"].isoformat() == stored


@pytest.mark.parametrize("sent", ["2100-01-05T00:00:00Z", "2100-01-02T23:59:59", "soon"])
def test_a_moment_of_another_day_is_refused(as_: As, filled: Store, sent: str) -> None:
    assert as_("ben").post(PAGE, data={**DUE, "due_at": sent}).status_code == 422


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
    monkeypatch.setattr(assignments, "may_be_analysed", lambda *_, **__: False)
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
    assert waiting_work.read(filled, ALL_SESSIONS, "sue").reviews == 0


def test_who_assigned_a_review_withdraws_it_and_assigns_it_again(as_: As, filled: Store) -> None:
    address = assigned(as_)
    as_("sue").post(address, data={"answer-warmth": "2", "do": "save"})
    as_("sue").post(f"{address}/comments", data={"seq": "1", "comment": "Here."})
    assert "Withdraw this review" in as_("ben").get(address).text
    assert "Withdraw this review" not in as_("pat").get(address).text
    assert as_("pat").post(f"{address}/withdraw").status_code == 404
    withdrawn = as_("ben").post(f"{address}/withdraw")
    assert withdrawn.headers["location"] == PAGE
    for table in (tables.reviews, tables.review_answers, tables.review_comments):
        assert rows(filled, table) == []
    assert as_("sue").get(address).status_code == 404
    assert as_("sue").post(address, data={**EVERY, "do": "sign-off"}).status_code == 404
    assert "review by sue withdrawn" in {each.detail for each in audit.latest(filled)}
    assigned(as_)


def test_a_reviewer_declines_through_the_api(as_: As, filled: Store) -> None:
    path = f"/api/v1{assigned(as_)}"
    assert as_("sue").get(path).json()["withdrawable"]
    assert not as_("pat").get(path).json()["withdrawable"]
    assert as_("sue").delete(path).status_code == 204
    assert as_("sue").delete(path).status_code == 404
    assert reviews.find(filled, ALL_SESSIONS, reviewer="sue", signed=False) == []


def test_a_signed_review_is_not_withdrawn(as_: As) -> None:
    address = assigned(as_)
    as_("sue").post(address, data={**EVERY, "do": "sign-off"})
    for name in ("sue", "ben"):
        assert "Withdraw this review" not in as_(name).get(address).text
        assert as_(name).post(f"{address}/withdraw").status_code == 409


def pair(filled: Store, session_id: str = "north-0") -> tuple[str, str]:
    """A double review of a session by Sue and Ben; the addresses of their halves."""
    card = parse(DEFAULT_SCORECARDS.read_bytes(), "scorecards.yaml")["empathy"]
    new = NewReview(
        session_id, "sue", "(drawn)", card, DUE_AT, origin=Origin.RISK, pair_id=session_id
    )
    made = reviews.assign(filled, [new, replace(new, reviewer="ben")])
    return f"/reviews/{made[0]}", f"/reviews/{made[1]}"


def test_double_reviews_are_blind_until_both_have_signed_off(as_: As, filled: Store) -> None:
    of_sue, of_ben = pair(filled)
    sue, ben = as_("sue"), as_("ben")
    form = sue.get(of_sue).text
    assert 'value="0" checked' not in form, "the scores fill in nothing"
    assert "gives “" not in form
    assert {each["auto"] for each in sue.get(f"/api/v1{of_sue}").json()["criteria"]} == {None}
    sue.post(f"{of_sue}/comments", data={"seq": "1", "comment": "An open question."})
    assert sue.post(of_sue, data={**EVERY, "do": "sign-off"}).status_code == 303
    assert "the other reviewer has not signed off" in sue.get("/reviews").text
    for address in (of_sue, f"/api/v1{of_sue}"):
        seen = ben.get(address).text
        assert "An open question." not in seen
        assert "<b>throughout</b>" not in seen
    assert ben.get(f"/api/v1{of_sue}").json()["criteria"][0]["value"] is None
    assert "the scores gave" not in sue.get(of_sue).text, "it would reach the other reviewer"
    ben.post(of_ben, data={**EVERY, "answer-warmth": "0", "do": "sign-off"})
    assert "An open question." in ben.get(of_sue).text
    assert "<b>hardly</b>" in sue.get(of_ben).text
    assert "the scores gave" in sue.get(of_sue).text


def test_withdrawing_half_of_a_double_review_releases_the_other(as_: As, filled: Store) -> None:
    of_sue, of_ben = pair(filled)
    as_("sue").post(of_sue, data={**EVERY, "do": "sign-off"})
    assert "answers can be read when" in as_("ben").get(of_sue).text
    assert "The other reviewer goes on alone." in as_("ben").get(of_ben).text
    assert as_("ben").post(f"{of_ben}/withdraw").status_code == 303
    assert "<b>throughout</b>" in as_("pat").get(of_sue).text
    assert ", double review" not in as_("sue").get("/reviews").text


def test_agreement_is_shown_by_criterion(as_: As, filled: Store) -> None:
    """One pair for each released double review, and the same statistic as for ratings."""
    for name in ("north-0", "north-1"):
        of_sue, of_ben = pair(filled, name)
        as_("sue").post(of_sue, data={**EVERY, "do": "sign-off"})
        assert "No double review" in as_("sue").get("/reviews/agreement").text or name == "north-1"
        as_("ben").post(of_ben, data={**EVERY, "do": "sign-off"})
    page = as_("ana").get("/reviews/agreement").text
    assert page.count("not enough ratings yet: 2") == 6
    assert "north-" not in page
    [first, *_] = as_("sue").get("/api/v1/reviews/agreement").json()
    assert (first["scorecard"], first["kappa"]["n"]) == ("Empathy in the conversation", 2)
    assert as_("sam").get("/api/v1/reviews/agreement").json() == [], "another team"


def test_agreement_is_the_weighted_kappa_of_ratings(
    filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    scale = ("a", "b", "c")
    card = Scorecard("c", "C", (Criterion("one", "One?", scale), Criterion("two", "Two?", scale)))
    given = [(0, 0)] * 9 + [(1, 1)] * 9 + [(2, 2)] * 9 + [(0, 2), (1, 2), (2, 1)]
    pairs = [(card, {"one": both}) for both in given]
    monkeypatch.setattr(reviews, "released_pairs", lambda *_: pairs)
    [found] = review_agreement.of_double_reviews(filled, ALL_SESSIONS)
    assert found.criterion == "one", "the other one has no answers"
    assert found.kappa == kappa(confusion_matrix(given, 3))
    assert found.kappa.kappa is not None
    assert found.kappa.low is not None
    assert found.kappa.low < found.kappa.kappa < 1
