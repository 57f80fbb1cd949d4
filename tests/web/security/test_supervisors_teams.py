"""A supervisor reads a team, all teams if the account says so explicitly, and otherwise nothing."""

import pytest
from pydantic import SecretStr

from stream_app.settings import Settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.people import People, Person, PersonError
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.stream.repository import Store
from stream_app.work.account_changes import AccountChanges
from tests.web.people.conftest import As

PASSWORD = "seven grey herons waiting"


@pytest.fixture
def settings(filled: Store) -> Settings:
    url = SecretStr(filled.engine.url.render_as_string())
    return Settings().model_copy(update={"database_url": url})


@pytest.fixture
def teamless(filled: Store) -> None:
    People(filled).add(Person("tom", PersonRole.SUPERVISOR), None)


@pytest.mark.usefixtures("teamless")
def test_a_supervisor_without_a_team_reads_nothing(as_: As) -> None:
    tom = as_("tom")
    for path in ("/sessions", "/alerts", "/history", "/speakers"):
        assert tom.get(f"/api/v1{path}").json()["items"] == [], path
    for path in ("/mutes", "/samples", "/disputes", "/alerts/precision"):
        assert tom.get(f"/api/v1{path}").json() == [], path
    for path in ("/sessions/north-0", "/sessions/north-0/turns", "/sessions/north-0/feedback"):
        assert tom.get(f"/api/v1{path}").status_code == 404, path
    assert tom.get("/sessions/north-0").status_code == 404
    assert "Your account has no team" in tom.get("/").text
    assert tom.get("/api/v1/exports/sessions", params={"format": "jsonl"}).text == ""
    assert "north-0" not in tom.get("/sessions").text
    for path in ("/teams", "/analytics", "/analytics/table", "/analytics?cohort=2026"):
        assert tom.get(path).status_code == 403, path


@pytest.mark.usefixtures("teamless")
@pytest.mark.parametrize("team", [None, "north"])
def test_a_supervisor_without_a_team_cannot_name_one(as_: As, team: str | None) -> None:
    """A mute of a rule would affect everybody; a sample or an analysis would show a team."""
    tom = as_("tom")
    mute = {"rule": "low-empathy-risk", "team": team, "minutes": 5}
    assert tom.post("/api/v1/mutes", json=mute).status_code == 403
    sample = {"title": "t", "bundle": "b", "size": 20, "team": team}
    assert tom.post("/api/v1/samples", json=sample).status_code == 403
    assert tom.post("/calibration", data={**sample, "team": team or ""}).status_code == 403
    asked = {"team": team} if team else {}
    assert tom.get("/api/v1/analyses/over-time", params=asked).status_code == 403


def test_the_account_says_which_teams_a_supervisor_reads(filled: Store, as_: As) -> None:
    changes = AccountChanges(filled, audit.COMMAND_LINE)

    def add(**teams: object) -> None:
        changes.add("una", PersonRole.SUPERVISOR, **teams)  # type: ignore[arg-type]

    for unclear in ({"team": None}, {"team": "north", "all_teams": True}):
        with pytest.raises(PersonError, match="either a team or all teams"):
            add(speaker=None, password=PASSWORD, **unclear)
    add(speaker=None, password=PASSWORD, team=None, all_teams=True)
    everything = len(as_("una").get("/api/v1/sessions").json()["items"])
    assert as_("una").get("/api/v1/me").json()["all_teams"] is True
    changes.change_teams("una", "south", all_teams=False)
    found = as_("una").get("/api/v1/sessions").json()["items"]
    assert {card["team"] for card in found} == {"south"}
    assert len(found) < everything
    with pytest.raises(PersonError, match="only supervisors"):
        changes.change_teams("ana", None, all_teams=True)
