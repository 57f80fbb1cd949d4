"""Ratings, disputes, calibration samples, agreement and feedback over HTTP."""

from typing import Any

import pytest

from stream_app.contracts.scores import MECHANISMS
from stream_app.store.accounts import audit
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store
from stream_app.store.work import calibration_samples
from tests.store import batches
from tests.store.batches import BUNDLE
from tests.web.people.conftest import As

ER = MECHANISMS[0]
RATING = {"session_id": "north-0", "seq": 1, "head": ER, "value": 2}
DISPUTE = {"session_id": "north-0", "seq": 1, "head": ER, "proposed": None, "note": "I did ask"}
LEVELS = dict.fromkeys(MECHANISMS, 1)


def level(as_: As) -> int:
    """The model's level of turn 1, taken from a dispute."""
    return int(as_("noor").post("/api/v1/disputes", json=DISPUTE).json()["value"])


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("sue", 200),
        ("pat", 200),
        ("noor", 200),
        ("sam", 404),
        ("olu", 404),
        ("ana", 403),
        ("", 401),
    ],
)
def test_roles_that_may_rate_and_list_ratings(as_: As, name: str, status: int) -> None:
    client = as_(name)
    answer = client.post("/api/v1/ratings", json=RATING)
    assert answer.status_code == status
    if status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        return
    [found] = client.get("/api/v1/ratings", params={"session": "north-0"}).json()
    assert (found["person"], found["value"], found["seq"]) == (name, 2, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"value": 3},
        {"value": -1},
        {"head": "warmth"},
        {"seq": 0},
        {"seq": None, "head": "rating", "value": 6},
        {"session_id": "a\0b"},
        {"seq": 2**31},
        {"extra": 1},
    ],
)
def test_invalid_ratings_are_refused_with_a_reason(as_: As, change: dict[str, Any]) -> None:
    answer = as_("sue").post("/api/v1/ratings", json=RATING | change)
    assert answer.status_code == 422
    assert answer.json()["detail"]


def test_a_person_can_delete_their_rating(as_: As) -> None:
    made = as_("sue").post("/api/v1/ratings", json=RATING).json()
    address = f"/api/v1/ratings/{made['rating_id']}"
    assert as_("ben").delete(address).status_code == 404
    assert as_("sue").delete(address).status_code == 204


def test_a_dispute_from_note_to_answer(as_: As) -> None:
    made = as_("noor").post("/api/v1/disputes", json=DISPUTE)
    assert made.status_code == 200
    assert as_("noor").post("/api/v1/disputes", json=DISPUTE).status_code == 409
    address = f"/api/v1/disputes/{made.json()['dispute_id']}/decide"
    answer = {"decision": "upheld", "answer": "so you did"}
    assert as_("noor").post(address, json=answer).status_code == 403
    assert as_("sam").post(address, json=answer).status_code == 404
    assert as_("sue").post(address, json=answer).json()["decided_by"] == "sue"
    assert as_("sue").post(address, json=answer).status_code == 409
    [own] = as_("noor").get("/api/v1/disputes").json()
    assert (own["decision"], own["answer"]) == ("upheld", "so you did")
    assert as_("olu").get("/api/v1/disputes").json() == []
    counted = as_("ana").get("/api/v1/agreement", params={"bundle": BUNDLE}).json()["disputes"]
    assert counted == [{"head": ER, "open": 0, "upheld": 1, "rejected": 0}]


@pytest.mark.parametrize(("name", "status"), [("sue", 403), ("ana", 403), ("olu", 404)])
def test_only_the_counsellor_of_a_turn_disputes_it(as_: As, name: str, status: int) -> None:
    assert as_(name).post("/api/v1/disputes", json=DISPUTE).status_code == status


def test_agreement_has_n_even_without_a_kappa(as_: As) -> None:
    as_("sue").post("/api/v1/ratings", json=RATING)
    body = as_("noor").get("/api/v1/agreement", params={"bundle": BUNDLE}).json()["agreement"]
    assert [(a["head"], a["sides"]) for a in body][:2] == [
        (ER, "people-model"),
        (ER, "people-people"),
    ]
    assert body[0]["kappa"]["problem"] == "not enough ratings yet: 1"
    assert body[0]["weights"] == "quadratic"


def test_the_counsellor_and_their_supervisor_read_feedback_and_reads_are_audited(
    as_: As, filled: Store
) -> None:
    address = "/api/v1/sessions/north-0/feedback"
    for name, status in (("sam", 404), ("olu", 404), ("ana", 403), ("ada", 403), ("", 401)):
        assert as_(name).get(address).status_code == status
    assert {entry.action for entry in audit.latest(filled, "north-0")} == {"refused"}
    [body] = as_("noor").get(address).json()
    assert body["judged_turns"] > 0
    assert body["mechanisms"] == [], "the fake model is sure of none"
    assert as_("sue").get(address).json() == [body]
    reads = [entry for entry in audit.latest(filled, "north-0") if entry.action != "refused"]
    assert {(entry.person, entry.detail) for entry in reads} == {
        ("noor", "feedback"),
        ("sue", "feedback"),
    }


def test_feedback_is_unavailable_until_the_session_ends(as_: As, filled: Store) -> None:
    events = [batches.turn(seq, session_id="open", team="north") for seq in range(4)]
    filled.commit(batches.process(events))
    answer = as_("sue").get("/api/v1/sessions/open/feedback")
    assert answer.status_code == 409
    assert "after the session" in answer.json()["detail"]


def draw(as_: As, name: str = "sue", **changes: Any) -> dict[str, Any]:
    asked = {"title": "autumn", "bundle": BUNDLE, "size": 6, "seed": 3, **changes}
    answer = as_(name).post("/api/v1/samples", json=asked)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def test_a_sample_from_drawing_to_report(as_: As, filled: Store) -> None:
    sample = draw(as_)
    address = f"/api/v1/samples/{sample['sample_id']}"
    for name in ("sue", "ben"):
        client = as_(name)
        assert client.get(f"{address}/report").status_code == 409
        for place in range(1, 7):
            shown = client.get(f"{address}/turns/{place}").json()
            assert shown["yours"] == {}
            assert client.post(f"{address}/turns/{place}", json=LEVELS).json()["yours"] == LEVELS
    assert as_("ben").post(f"{address}/turns/1", json=LEVELS).status_code == 409
    body = as_("ben").get(f"{address}/report").json()
    other = as_("sue").get(f"{address}/report").json()["you"]
    assert body["raters"] == ["A", "B"]
    assert {body["you"], other} == {"A", "B"}  # assigned at random, not alphabetically
    assert [c["kappa"]["n"] for c in body["comparisons"]] == [6] * 9
    assert body["comparisons"][0]["counts"] == [[0, 0, 0], [0, 6, 0], [0, 0, 0]]
    assert as_("ana").get(f"{address}/report").json()["you"] is None
    assert as_("pat").get(f"{address}/report").status_code == 409, "has yet to rate"
    reads = [t for t in audit.latest(filled) if t.action == "read transcript"]
    assert {t.person for t in reads} == {"sue", "ben"}
    assert len({t.session_id for t in reads}) > 1


def test_a_rater_sees_only_roles_and_text(as_: As) -> None:
    sample = draw(as_)
    address = f"/api/v1/samples/{sample['sample_id']}/turns/1"
    as_("ben").post(address, json={**LEVELS, ER: 2})
    shown = as_("sue").get(address)
    assert set(shown.json()) == {"place", "before", "turn", "yours"}
    assert shown.json()["yours"] == {}
    assert shown.json()["turn"]["role"] == "counsellor"
    assert "north-" not in shown.text


@pytest.mark.parametrize(
    ("name", "status"), [("sam", 404), ("noor", 403), ("ana", 403), ("ada", 403)]
)
def test_roles_that_may_not_read_turns_of_a_sample(as_: As, name: str, status: int) -> None:
    sample = draw(as_)
    address = f"/api/v1/samples/{sample['sample_id']}/turns/1"
    assert as_(name).get(address).status_code == status
    assert as_(name).post(address, json=LEVELS).status_code == status


@pytest.mark.parametrize("values", [{}, {ER: 1}, {**LEVELS, ER: 3}, {**LEVELS, "strategy": 1}])
def test_a_turn_of_a_sample_needs_one_level_for_each_mechanism(
    as_: As, values: dict[str, int]
) -> None:
    address = f"/api/v1/samples/{draw(as_)['sample_id']}/turns/1"
    assert as_("sue").post(address, json=values).status_code == 422


def test_a_team_supervisor_draws_only_from_the_own_team(as_: As, filled: Store) -> None:
    other = {"title": "t", "bundle": BUNDLE, "team": "south"}
    assert as_("sue").post("/api/v1/samples", json=other).status_code == 403
    assert draw(as_)["team"] == "north"
    everywhere = draw(as_, "pat", size=300)
    sample = calibration_samples.one(filled, ALL_SESSIONS, everywhere["sample_id"])
    teams = {
        turn.session_id[:5] for turn in calibration_samples.collect_ratings(filled, sample).turns
    }
    assert teams == {"north", "south"}
    assert [s["sample_id"] for s in as_("sam").get("/api/v1/samples").json()] == []


def test_agreement_is_recomputed_after_a_rating(as_: As) -> None:
    def pairs() -> int:
        body = as_("ana").get("/api/v1/agreement", params={"bundle": BUNDLE}).json()["agreement"]
        return int(body[0]["kappa"]["n"])

    assert pairs() == 0
    for seq in (1, 3, 5):
        as_("sue").post("/api/v1/ratings", json={**RATING, "seq": seq})
    assert pairs() == 3
    made = as_("sue").post("/api/v1/ratings", json=RATING).json()
    as_("sue").delete(f"/api/v1/ratings/{made['rating_id']}")
    assert pairs() == 2
