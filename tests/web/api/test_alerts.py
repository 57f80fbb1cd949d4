"""Alerts over HTTP: states, actions, precision, mutes."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from stream_app.store.database.tables import alerts
from tests.store.batches import end, turn
from tests.web.api.conftest import CLEO
from tests.web.server import Web


@pytest.fixture
def nora(web: Web) -> Iterator[httpx.Client]:
    with web.client("nora") as client:
        yield client


def new_alert(web: Web, session_id: str) -> str:
    facts = {"session_id": session_id, "team": "north", "speaker_id": CLEO}
    log = [turn(seq, **facts) for seq in range(2)]
    return web.commit(*log).alerts[0].episode_id


def test_an_alert_has_its_reason_turns_and_transitions(web: Web, nora: httpx.Client) -> None:
    episode = new_alert(web, "explained")
    alert = nora.get(f"/alerts/{episode}").json()
    assert alert["state"] == "firing"
    assert [step["state"] for step in alert["transitions"]][-1] == "firing"
    assert alert["reason"]
    assert alert["values"]
    assert alert["team"] == "north"


def test_acknowledged_then_resolved_with_reason_and_note(web: Web, nora: httpx.Client) -> None:
    episode = new_alert(web, "handled")
    note = {"reason": "justified", "note": "I am following this session"}
    assert nora.post(f"/alerts/{episode}/acknowledge", json=note).json()["state"] == "acknowledged"
    assert nora.post(f"/alerts/{episode}/note", json={"note": "calmer now"}).status_code == 200
    alert = nora.post(f"/alerts/{episode}/resolve", json={"reason": "justified-handled"}).json()
    assert alert["state"] == "resolved"
    assert [act["kind"] for act in alert["actions"]] == ["acknowledge", "note", "resolve"]
    assert {act["person"] for act in alert["actions"]} == {"nora"}
    assert alert["actions"][0]["note"] == "I am following this session"
    listed = nora.get("/alerts", params={"state": ["resolved"], "session": "handled"}).json()
    assert [each["episode_id"] for each in listed["items"]] == [episode]
    firing = nora.get("/alerts", params={"state": ["firing"], "session": "handled"}).json()
    assert firing["items"] == []


@pytest.mark.parametrize(
    ("name", "note", "person"),
    [("ana", None, "withheld"), ("ada", None, "nora"), ("cleo", None, "nora")],
)
def test_only_supervisors_see_notes(
    web: Web, nora: httpx.Client, name: str, note: Any, person: str
) -> None:
    episode = new_alert(web, f"noted-{name}")
    nora.post(f"/alerts/{episode}/note", json={"note": "she spoke of her mother"})
    with web.client(name) as client:
        one = client.get(f"/alerts/{episode}")
        listed = client.get("/alerts", params={"session": f"noted-{name}"})
    assert "mother" not in one.text + listed.text
    assert [(act["note"], act["person"]) for act in one.json()["actions"]] == [(note, person)]


def test_an_acknowledgement_needs_one_of_the_reasons(web: Web, nora: httpx.Client) -> None:
    episode = new_alert(web, "reasons")
    wrong: list[Any] = [{}, {"reason": "because"}, {"reason": "justified", "more": 1}]
    for body in [*wrong, {"reason": None}]:
        assert nora.post(f"/alerts/{episode}/acknowledge", json=body).status_code == 422


def test_precision_uses_the_last_reason_of_each_alert(web: Web, nora: httpx.Client) -> None:
    with web.client("sam") as sam:
        assert sam.get("/alerts/precision").json() == []
        reasons = ("justified", "false-alarm", "justified-handled", "not-now")
        for number, reason in enumerate(reasons):
            log = [turn(seq, session_id=f"judged-{number}", team="south") for seq in range(2)]
            episode = web.commit(*log).alerts[0].episode_id
            for given in ("false-alarm", reason):
                sam.post(f"/alerts/{episode}/acknowledge", json={"reason": given})
        [row] = sam.get("/alerts/precision").json()
    assert (row["justified"], row["judged"]) == (2, 4)
    assert row["precision"] == 0.5
    assert row["low"] == pytest.approx(0.1500, abs=1e-3)  # Wilson, by hand
    assert row["high"] == pytest.approx(0.8500, abs=1e-3)


def test_alerts_are_muted_until_the_mute_ends(web: Web, nora: httpx.Client) -> None:
    episode = new_alert(web, "muted")
    made = nora.post("/mutes", json={"session_id": "muted", "minutes": 5, "reason": "a drill"})
    assert made.status_code == 201
    mute = made.json()
    assert nora.get(f"/alerts/{episode}").json()["muted"] is True
    assert mute["mute_id"] in {each["mute_id"] for each in nora.get("/mutes").json()}
    with web.client("sam") as sam:
        assert mute["mute_id"] not in {each["mute_id"] for each in sam.get("/mutes").json()}
        assert sam.delete(f"/mutes/{mute['mute_id']}").status_code == 404
    assert nora.delete(f"/mutes/{mute['mute_id']}").json()["ended_at"] is not None
    assert nora.get(f"/alerts/{episode}").json()["muted"] is False
    assert nora.delete(f"/mutes/{mute['mute_id']}").status_code == 404


def test_a_team_supervisors_mute_of_a_rule_applies_to_the_own_team(
    web: Web, nora: httpx.Client
) -> None:
    made = nora.post("/mutes", json={"rule": "some-rule", "minutes": 5}).json()
    assert made["team"] == "north"
    with web.client("sue") as sue:
        everywhere = sue.post("/mutes", json={"rule": "other-rule", "minutes": 5}).json()
        assert everywhere["team"] is None
    assert everywhere["mute_id"] in {each["mute_id"] for each in nora.get("/mutes").json()}
    assert nora.delete(f"/mutes/{everywhere['mute_id']}").status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"minutes": 5},
        {"rule": "r"},
        {"rule": "r", "minutes": 0},
        {"rule": "r", "minutes": 5, "until": "2030-01-01T00:00:00Z"},
        {"rule": "r", "until": "2020-01-01T00:00:00Z"},
        {"rule": "r", "until": "2030-01-01T00:00:00"},
        {"rule": "r", "until": (datetime.now(UTC) + timedelta(days=31)).isoformat()},
        {"rule": "r", "until": "9999-12-31T23:59:59-14:00"},
        {"rule": "r\u0000", "minutes": 5},
    ],
)
def test_a_mute_needs_a_target_and_a_duration(nora: httpx.Client, body: Any) -> None:
    answer = nora.post("/mutes", json=body)
    assert answer.status_code == 422, answer.text


def test_a_mute_accepts_an_end_time(nora: httpx.Client) -> None:
    until = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
    made = nora.post("/mutes", json={"team": "north", "until": until.isoformat()}).json()
    assert datetime.fromisoformat(made["until"]) == until


def test_an_alert_that_resolved_by_itself_is_judged_and_counts(
    web: Web, nora: httpx.Client
) -> None:
    episode = new_alert(web, "unseen")
    web.commit(end(session_id="unseen"))
    to_review = {"state": "resolved", "fired": True, "judged": False, "session": "unseen"}
    [alert] = nora.get("/alerts", params=to_review).json()["items"]
    assert (alert["episode_id"], alert["judgement"]) == (episode, None)

    def judged() -> int:
        return sum(row["judged"] for row in nora.get("/alerts/precision").json())

    before = judged()
    body = {"judgement": "false-alarm", "note": "a goodbye"}
    answer = nora.post(f"/alerts/{episode}/judge", json=body).json()
    assert (answer["state"], answer["judgement"]) == ("resolved", "false-alarm")
    assert judged() == before + 1
    assert nora.get("/alerts", params=to_review).json()["items"] == []
    again = nora.post(f"/alerts/{episode}/judge", json={"judgement": "justified"}).json()
    assert again["judgement"] == "justified"
    assert judged() == before + 1, "the last judgement counts"


@pytest.mark.parametrize("given", ["maybe", "justified-handled", None])
def test_only_judgements_are_accepted(web: Web, nora: httpx.Client, given: str | None) -> None:
    episode = new_alert(web, f"wrongly-judged-{given}")
    answer = nora.post(f"/alerts/{episode}/judge", json={"judgement": given})
    assert answer.status_code == 422


def test_what_never_fired_takes_no_action_but_a_note(web: Web, nora: httpx.Client) -> None:
    episode = new_alert(web, "pending-only")
    fired = (alerts.c.episode_id == episode) & (alerts.c.state == "firing")
    with web.store.transaction() as connection:
        connection.execute(sa.delete(alerts).where(fired))
    for action, body in (
        ("judge", {"judgement": "justified"}),
        ("acknowledge", {"reason": "justified"}),
        ("resolve", {}),
    ):
        answer = nora.post(f"/alerts/{episode}/{action}", json=body)
        assert (answer.status_code, answer.json()["status"]) == (409, 409)
        assert answer.json()["detail"].startswith("the alert has never fired, so it cannot be ")
    assert nora.post(f"/alerts/{episode}/note", json={"note": "n"}).status_code == 200
    assert nora.get(f"/alerts/{episode}").json()["actions"][0]["kind"] == "note"
    listed = nora.get("/alerts", params={"fired": False, "session": "pending-only"}).json()
    assert [each["episode_id"] for each in listed["items"]] == [episode]
