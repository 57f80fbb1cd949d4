"""Policy profiles in the console: footer, page, and what people have to read before they act."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr

from stream_app import bootstrap, policies
from stream_app.settings import Settings
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.stream.repository import Store
from stream_app.store.work import disputes
from tests.store import batches, judging
from tests.web.people.client import Client

UnderPolicy = Callable[[str], Client]
LIVE = "live"
NOTE = {"kind": "note", "text": "Ask what the weekend looks like"}
GOAL = {
    "measure": "explorations",
    "goal": "Ask more openly",
    "starts_on": "2026-01-05",
    "ends_on": "2026-03-30",
}


@pytest.fixture
def under(filled: Store, tmp_path: Path) -> UnderPolicy:
    """A supervisor's client under a policy, with an open session of team north."""
    events = [
        batches.turn(
            seq,
            session_id=LIVE,
            team="north",
            speaker_id=judging.NOOR if seq % 2 else "client",
        )
        for seq in range(4)
    ]
    filled.commit(batches.process(events))

    def client(policy: str) -> Client:
        given = Settings(
            policy=policy,
            workers_told="2026-03-01",
            database_url=SecretStr(f"sqlite:///{tmp_path}/rapport.db"),
        )
        token = People(filled).create_token("sue", "test")
        return Client(bootstrap.web(given), token)

    return client


@pytest.mark.parametrize("name", policies.shipped())
def test_the_footer_says_what_is_in_force(under: UnderPolicy, name: str) -> None:
    sue, profile = under(name), policies.load(name)
    foot = sue.get("/help").text.partition("<footer")[2]
    assert f'Policy <a href="/policy">{name}</a>: {profile.headline}.' in foot
    page = sue.get("/policy").text
    assert profile.consent_version in page
    assert "RAPPORT_KEEP_TEXT_DAYS" in page
    assert "deleted after 30 days" in " ".join(page.split())
    anonymous = Client(sue.app, "").get("/sign-in").text
    assert f"Policy {name}: {profile.headline}." in anonymous


def test_without_a_policy_the_footer_names_none(as_: Callable[[str], Client]) -> None:
    assert "Policy" not in as_("sue").get("/help").text.partition("<footer")[2]
    assert "No policy profile is in force" in as_("sue").get("/policy").text


def test_nobody_acts_on_a_person_without_having_read_the_session(under: UnderPolicy) -> None:
    sue = under("eu-workplace")
    noor = counsellor(sue)
    acts = (
        (f"/api/v1/sessions/{LIVE}/interventions", NOTE),
        ("/api/v1/goals", {**GOAL, "counsellor": noor}),
    )
    for path, body in acts:
        refused = sue.post(path, json=body)
        assert refused.status_code == 409, path
        assert "the policy eu-workplace asks that you read" in refused.text
    sue.get("/exports/turns?format=csv")
    assert sue.post(acts[0][0], json=NOTE).status_code == 409, "an export is no reading"
    sue.get(f"/sessions/{LIVE}").raise_for_status()
    for path, body in acts:
        assert sue.post(path, json=body).status_code == 201, path


def test_a_review_is_signed_off_after_reading(under: UnderPolicy) -> None:
    sue = under("eu-workplace")
    review = sue.post(
        "/api/v1/reviews",
        json={"session_id": LIVE, "reviewer": "sue", "due_at": "2100-01-02T00:00:00Z"},
    ).json()["review_id"]
    path = f"/api/v1/reviews/{review}"
    answers = {each["name"]: 1 for each in sue.get(path).json()["criteria"]}
    assert sue.put(f"{path}/answers", json={"answers": answers}).status_code == 200
    signed = {"answers": answers, "sign_off": True}
    assert sue.put(f"{path}/answers", json=signed).status_code == 409
    sue.get(f"/reviews/{review}").raise_for_status()
    assert sue.put(f"{path}/answers", json=signed).status_code == 200


def test_a_dispute_is_decided_after_reading(under: UnderPolicy, filled: Store) -> None:
    sue = under("eu-workplace")
    noor = next(each for each in People(filled).all() if each.role is PersonRole.COUNSELLOR)
    speaker = filled.privacy.pseudonym(judging.NOOR)
    said_it = Person(noor.name, PersonRole.COUNSELLOR, None, speaker)
    contested = disputes.contest(filled, said_it, LIVE, 1, "explorations", None, "No")
    answer = {"decision": "rejected", "answer": "The question is closed."}
    path = f"/api/v1/disputes/{contested.dispute_id}/decide"
    sue.get("/disputes").raise_for_status()
    assert sue.post(path, json=answer).status_code == 409
    form = sue.post(f"/disputes/{contested.dispute_id}", data=answer)
    assert form.status_code == 409
    assert "open its page" in form.text
    sue.get(f"/sessions/{LIVE}").raise_for_status()
    assert sue.post(path, json=answer).status_code == 200


def test_research_acts_on_nobody(under: UnderPolicy) -> None:
    sue = under("research")
    sue.get(f"/sessions/{LIVE}").raise_for_status()
    for path, body in (
        (f"/api/v1/sessions/{LIVE}/interventions", NOTE),
        ("/api/v1/goals", {**GOAL, "counsellor": counsellor(sue)}),
    ):
        refused = sue.post(path, json=body)
        assert refused.status_code == 409, path
        assert "allows no goals and no interventions" in refused.text


def counsellor(sue: Client) -> str:
    turns = sue.get("/api/v1/speakers").json()
    return str(turns["items"][0]["speaker"])
