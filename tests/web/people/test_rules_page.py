"""The rules page and its API: read, check, try, propose, adopt, roll back."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from pydantic import SecretStr

from stream_app import bootstrap
from stream_app.core.rules.yaml_file import digest_of
from stream_app.settings import RulesSource, Settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.people import People
from stream_app.store.alerts import alert_actions, rule_versions
from stream_app.store.alerts.alerts import ActionKind
from stream_app.store.database import tables
from stream_app.store.database.judgements import Reason
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store
from stream_app.web.services import Services
from stream_app.work import rule_trials
from stream_app.work.passwords import hash_password
from tests.rule_texts import EAGER_TEXT, HEAD, risk_text, rule_text
from tests.store.batches import MANIFEST
from tests.web.people.client import Client
from tests.web.people.test_pages import proper

PASSWORD = "long enough to pass"
NOW = HEAD + EAGER_TEXT
NEVER = HEAD + risk_text(1.0, 1.0)
BAD = NOW.replace('when: "low_empathy_risk', 'when: "riks')
World = Callable[..., "Console"]


class Console:
    """An application with clients, on the filled store."""

    def __init__(self, app: FastAPI, store: Store) -> None:
        self.app, self.store = app, store

    @property
    def services(self) -> Services:
        found: Services = self.app.state.services
        return found

    def __call__(self, name: str) -> Client:
        return Client(self.app, People(self.store).create_token(name, "test"))


@cache
def _hash() -> str:
    return hash_password(PASSWORD)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "rules.yaml"
    found.write_text(NOW, "utf-8")
    return found


@pytest.fixture
def console(filled: Store, tmp_path: Path, file: Path) -> World:
    """Start the application with rules from a file or from the database."""
    with filled.transaction() as connection:
        connection.execute(sa.update(tables.bundles).values(manifest=MANIFEST))
    People(filled).set_password("ada", _hash())

    def start(source: RulesSource = RulesSource.DATABASE) -> Console:
        url = SecretStr(f"sqlite:///{tmp_path}/rapport.db")
        changes = {"database_url": url, "rules": file, "rules_source": source}
        return Console(bootstrap.web(Settings().model_copy(update=changes)), filled)

    return start


def judge(store: Store, *reasons: Reason) -> None:
    """Answer the first fired alerts of the store, one by one."""
    query = (
        sa.select(tables.alerts.c.episode_id)
        .where(tables.alerts.c.state == "firing")
        .order_by(tables.alerts.c.session_id, tables.alerts.c.episode)
    )
    with store.reading() as connection:
        episodes = connection.scalars(query).all()
    assert len(episodes) >= len(reasons)
    for episode, reason in zip(episodes, reasons, strict=False):
        alert_actions.record_action(store, ALL_SESSIONS, episode, ActionKind.JUDGE, "sue", reason)


def trial(client: Client, text: str, sessions: int = 50) -> dict[str, Any]:
    answer = client.post("/api/v1/rules/trial", json={"text": text, "sessions": sessions})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_file_is_read_edited_as_a_copy_and_downloaded(console: World) -> None:
    sue = console(RulesSource.FILE)("sue")
    page = proper(sue.get("/rules"))
    assert "rules.yaml" in page
    assert digest_of(NOW.encode()) in page
    assert "low-empathy-risk" in page
    assert "RAPPORT_RULES_SOURCE=database" in page
    draft = proper(sue.get("/rules/draft"))
    assert EAGER_TEXT.splitlines()[0].strip() in draft
    assert "Save as a version" not in draft
    copy = sue.post("/rules/draft/download", data={"text": NOW.replace("\n", "\r\n")})
    assert copy.text == NOW
    assert "rules.yaml" in copy.headers["content-disposition"]


def test_rules_of_a_file_are_not_changed_here(console: World) -> None:
    started = console(RulesSource.FILE)
    new = {"text": NEVER, "reason": "fewer"}
    answer = started("sue").post("/api/v1/rules/versions", json=new)
    assert answer.status_code == 409
    assert "come from a file" in answer.json()["detail"]
    assert rule_versions.history(started.store) == []


def test_a_check_names_line_and_column(console: World) -> None:
    sue = console()("sue")
    found = sue.post("/api/v1/rules/check", json={"text": BAD}).json()
    [problem] = found["problems"]
    line = BAD.splitlines()[problem["line"] - 1]
    assert line[problem["column"] - 1 :].startswith("riks")
    assert not found["valid"]
    page = proper(sue.post("/rules/draft/check", data={"text": BAD}), 422)
    assert f"Line {problem['line']}, column {problem['column']}:" in page
    assert "riks" in page, "the draft is kept"
    found = sue.post("/api/v1/rules/check", json={"text": NOW}).json()
    assert (found["valid"], found["rules"]) == (True, ["low-empathy-risk"])


def test_a_check_accepts_no_endless_text(console: World) -> None:
    sue = console()("sue")
    assert sue.post("/api/v1/rules/check", json={"text": "#" * 65537}).status_code == 422
    assert sue.post("/rules/draft/check", data={"text": "#" * 65537}).status_code == 413


def test_the_rules_in_force_tried_on_themselves_change_nothing(console: World) -> None:
    found = trial(console()("sue"), NOW)
    assert found["sessions"] == 3, "of the own team"
    [rule] = found["rules"]
    assert rule["both"] == rule["alerts"] > 0
    assert rule["only_draft"] == rule["only_in_force"] == rule["missed"] == rule["avoided"] == 0
    assert rule["precision"] is None, "nobody has answered"
    everywhere = trial(console()("ada"), NOW)
    assert everywhere["sessions"] == 6
    assert trial(console()("ada"), NOW, 2)["sessions"] == 2


def test_answers_count_for_the_alerts_that_a_draft_would_raise_again(
    console: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_trials, "ENOUGH_ANSWERS", 3)
    started = console()
    judge(started.store, Reason.JUSTIFIED, Reason.FALSE_ALARM, Reason.JUSTIFIED)
    [same] = trial(started("ada"), NOW)["rules"]
    assert (same["answered"], same["justified"]) == (3, 2)
    assert same["precision"]["precision"] == pytest.approx(2 / 3)
    assert same["precision"]["low"] < 2 / 3 < same["precision"]["high"]
    [never] = trial(started("ada"), NEVER)["rules"]
    assert (never["alerts"], never["missed"], never["avoided"]) == (0, 2, 1)
    assert never["only_in_force"] == same["both"]
    assert never["precision"] is None
    page = proper(started("ada").post("/rules/draft/try", data={"text": NOW, "sessions": "20"}))
    assert "67 %" in page
    assert "n = 3" in page
    few = proper(started("sue").post("/rules/draft/try", data={"text": NEVER}))
    assert "not enough answers" in few


def test_new_and_removed_rules_are_compared(console: World) -> None:
    new = HEAD + rule_text("eager", when="turns > 2")
    [added, removed] = trial(console()("ada"), new)["rules"]
    assert (added["rule"], added["in_force"], added["sessions"]) == ("eager", False, 6)
    assert (removed["rule"], removed["in_draft"], removed["alerts"]) == (
        "low-empathy-risk",
        False,
        0,
    )
    assert removed["only_in_force"] > 0


def test_an_invalid_draft_is_not_tried(console: World) -> None:
    sue = console()("sue")
    answer = sue.post("/api/v1/rules/trial", json={"text": BAD})
    assert answer.status_code == 422
    assert "riks" in answer.json()["detail"]
    assert "riks" in proper(sue.post("/rules/draft/try", data={"text": BAD}), 422)


def test_one_trial_runs_at_a_time_and_ends_after_its_time(
    console: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = console()
    with started.services.trial_running:
        answer = started("sue").post("/api/v1/rules/trial", json={"text": NOW})
        assert answer.status_code == 409
        page = proper(started("sue").post("/rules/draft/try", data={"text": NOW}), 422)
        assert "another trial is running" in page
    monkeypatch.setattr(rule_trials, "SECONDS", -1.0)
    found = trial(started("sue"), NOW)
    assert (found["sessions"], found["complete"]) == (0, False)


def test_sessions_that_cannot_be_replayed_are_counted(console: World) -> None:
    started = console()
    with started.store.transaction() as connection:
        gone = tables.turn_scores.c.session_id == "north-0"
        connection.execute(sa.delete(tables.turn_scores).where(gone))
    found = trial(started("sue"), NOW)
    assert (found["sessions"], found["left_out"]) == (2, 1)


def test_a_manifest_that_names_outcomes_without_a_model_is_tried(console: World) -> None:
    """The demo's synthetic bundles do."""
    started = console()
    with_names = MANIFEST | {"outcomes": {"rating": {}}}
    with started.store.transaction() as connection:
        connection.execute(sa.update(tables.bundles).values(manifest=with_names))
    assert trial(started("sue"), NOW)["sessions"] == 3
    proper(started("sue").post("/rules/draft/try", data={"text": NOW}))


@pytest.mark.parametrize(
    "part", [{"outcomes": {"rating": {"weights": {}}}}, {"outcomes": [1]}, {"window": [3]}]
)
def test_sessions_of_unreadable_manifests_are_left_out(
    console: World, part: dict[str, Any]
) -> None:
    started = console()
    with started.store.transaction() as connection:
        connection.execute(sa.update(tables.bundles).values(manifest=MANIFEST | part))
    found = trial(started("sue"), NOW)
    assert (found["sessions"], found["left_out"]) == (0, 3)


def test_a_trial_is_audited(console: World) -> None:
    started = console()
    trial(started("sue"), NOW)
    [entry] = audit.latest(started.store)
    assert (entry.person, entry.action, entry.detail) == (
        "sue",
        "read statistics",
        "trial of alert rules",
    )


def test_a_supervisor_proposes_an_administrator_adopts_and_rolls_back(console: World) -> None:
    started = console()
    sue, ada = started("sue"), started("ada")
    saved = sue.post("/rules/draft/save", data={"text": NEVER, "reason": "too many alerts"})
    assert (saved.status_code, saved.headers["location"]) == (303, "/rules?saved=1")
    assert sue.get("/api/v1/rules").json()["text"] == NOW, "a proposal is not in force"
    assert "proposed" in proper(sue.get("/rules"))
    adopt = {"reason": "agreed", "password": PASSWORD}
    assert sue.post("/rules/versions/1/adopt", data=adopt).status_code == 403
    wrong = proper(ada.post("/rules/versions/1/adopt", data={**adopt, "password": "no"}), 422)
    assert "your password is wrong" in wrong
    assert ada.post("/rules/versions/1/adopt", data=adopt).status_code == 303
    page = proper(sue.get("/rules"))
    assert '<a href="/rules/versions/1">version 1</a>. Workers' in page
    assert digest_of(NEVER.encode()) in page
    assert "This version is in force" in proper(ada.get("/rules/versions/1"))
    assert 'id="adopt"' not in proper(ada.get("/rules/versions/1"))
    found = sue.get("/api/v1/rules").json()
    assert (found["text"], found["version"], found["source"]) == (NEVER, 1, "database")
    assert ada.post("/api/v1/rules/versions", json={"text": NOW, "reason": "r"}).status_code == 201
    page = proper(ada.get("/rules/versions/2"))
    assert '<input type="hidden" name="replaces" value="1">' in page
    assert 'id="adopt"' not in proper(sue.get("/rules/versions/2"))
    path = "/api/v1/rules/versions"
    assert ada.post(f"{path}/2/adopt", json={"reason": "r", "replaces": 1}).status_code == 200
    stale = ada.post(f"{path}/1/adopt", json={"reason": "r", "replaces": 1})
    assert (stale.status_code, "in the meantime" in stale.json()["detail"]) == (409, True)
    assert "Roll back" in proper(ada.get("/rules"))
    back = ada.post("/rules/versions/1/adopt", data={**adopt, "replaces": "2"})
    assert back.status_code == 303
    assert sue.get("/api/v1/rules").json()["text"] == NEVER
    assert ada.post(f"{path}/1/adopt", json={"reason": "r"}).status_code == 409
    assert ada.post(f"{path}/9/adopt", json={"reason": "r"}).status_code == 404
    details = [e.detail or "" for e in audit.latest(started.store) if e.action == "change rules"]
    assert [detail.split(",")[0] for detail in reversed(details)] == [
        "saved version 1",
        "adopted version 1",
        "saved version 2",
        "adopted version 2",
        "adopted version 1",
    ]


def test_neither_invalid_rules_nor_changes_without_a_reason_are_stored(console: World) -> None:
    started = console()
    sue = started("sue")
    assert "has errors" in proper(
        sue.post("/rules/draft/save", data={"text": BAD, "reason": "r"}), 422
    )
    page = proper(sue.post("/rules/draft/save", data={"text": NEVER, "reason": " "}), 422)
    assert "state the reason" in page
    assert sue.post("/api/v1/rules/versions", json={"text": BAD, "reason": "r"}).status_code == 422
    assert rule_versions.history(started.store) == []


def test_a_reason_is_redacted(console: World) -> None:
    started = console()
    sue = started("sue")
    new = {"text": NEVER, "reason": "as write@example.org said"}
    assert sue.post("/api/v1/rules/versions", json=new).status_code == 201
    [version] = rule_versions.history(started.store)
    assert "example.org" not in version.reason


def test_a_broken_file_is_shown_with_its_errors(console: World, file: Path) -> None:
    file.write_text(BAD, "utf-8")
    sue = console(RulesSource.FILE)("sue")
    assert "there is no variable or function" in proper(sue.get("/rules"))
    file.unlink()
    assert "cannot be read" in proper(sue.get("/rules"))
    assert sue.get("/api/v1/rules").status_code == 404
    assert sue.get("/rules/draft").status_code == 422


def test_pages_are_for_supervisors_and_administrators(console: World) -> None:
    started = console()
    for name in ("noor", "ana"):
        proper(started(name).get("/rules"), 403)
        assert started(name).get("/api/v1/rules").status_code == 403
    assert '<nav class="admin-parts"' in proper(started("ada").get("/rules"))
    assert '<nav class="admin-parts"' not in proper(started("sue").get("/rules"))
