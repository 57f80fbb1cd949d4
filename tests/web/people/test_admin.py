"""The administrator's pages: health, accounts and tokens, settings, rules, retention, audit."""

import re
from datetime import UTC, datetime, timedelta
from functools import cache

import httpx
import pytest
import sqlalchemy as sa

from stream_app.settings import Settings
from stream_app.shown_settings import shown_settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole, Right
from stream_app.store.database import tables
from stream_app.store.lifecycle.service_facts import PartitionProgress
from stream_app.store.stream.repository import Store
from stream_app.web.console.admin.overview import lags
from stream_app.work.account_changes import SHOWN_FOR, AccountChanges, grants
from stream_app.work.passwords import hash_password, verify_password
from tests.web.people.client import Client
from tests.web.people.conftest import As
from tests.web.people.test_pages import proper

PASSWORD = "long enough to pass"
SECRET = re.compile(r'<code id="secret">([^<]+)</code>')
PAGES = (
    "",
    "/accounts",
    "/teams",
    "/settings",
    "/retention",
    "/erasure",
    "/holds",
    "/audit",
)


@cache
def _hash() -> str:
    return hash_password(PASSWORD)


@pytest.fixture
def ada(as_: As, filled: Store) -> Client:
    """An administrator with a password."""
    People(filled).set_password("ada", _hash())
    return as_("ada")


def send(ada: Client, path: str, **form: str) -> httpx.Response:
    return ada.post(f"/admin/accounts{path}", data={"password": PASSWORD, **form})


def changes(store: Store) -> list[str | None]:
    """Details of the newest changes of accounts, by whom they were made."""
    found = [one for one in audit.latest(store) if one.action == "change account"]
    assert {one.person for one in found} <= {"ada"}
    return [one.detail for one in found]


def test_every_page_of_the_administration_opens_without_a_broker(ada: Client) -> None:
    for path in PAGES:
        page = proper(ada.get(f"/admin{path}"))
        assert '<nav class="admin-parts"' in page
        assert 'aria-current="page"' in page


def test_nobody_else_opens_them(as_: As) -> None:
    for name in ("sue", "noor", "ana"):
        for path in PAGES:
            page = proper(as_(name).get(f"/admin{path}"), 403)
            assert '<nav aria-label="Main">' in page, "an error page keeps the navigation"
            assert "ask an administrator" in page


def test_the_health_names_schema_bundle_and_an_unreachable_broker(
    ada: Client, filled: Store
) -> None:
    page = proper(ada.get("/admin"))
    assert "no answer" in page
    assert "in order" in page
    with filled.reading() as connection:
        [bundle] = connection.scalars(sa.select(tables.bundles.c.bundle))
    assert f'<th scope="row">{bundle}</th>' in page


def test_lag_is_the_distance_to_the_end_of_the_log() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    stored = [PartitionProgress("t", 0, 7, at), PartitionProgress("t", 1, 9, at)]
    assert [each.waiting for each in lags(stored, {0: 12, 1: 9})] == [5, 0]
    assert [each.waiting for each in lags(stored, None)] == [None, None]
    unread = lags(stored, {0: 12, 1: 9, 2: 4})[2]
    assert (unread.partition, unread.stored, unread.waiting) == (2, 0, 4)


def test_secrets_are_masked(ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    page = proper(ada.get("/admin/settings"))
    assert "RAPPORT_KEEP_TEXT_DAYS" in page
    assert "RAPPORT_DATABASE_PASSWORD" in page
    assert "sqlite:///" in page


def test_an_account_gets_an_initial_password_that_must_be_changed(
    ada: Client, as_: As, filled: Store
) -> None:
    page = proper(send(ada, "", name="new sup", role="supervisor", team="north"))
    [initial] = SECRET.findall(page)
    people = People(filled)
    made = people.find("new sup")
    assert made == Person("new sup", PersonRole.SUPERVISOR, "north", initial_password=True)
    stored = people.password_hash("new sup")
    assert stored is not None
    assert verify_password(initial, stored)
    assert changes(filled) == ["added new sup as supervisor of north"]
    assert initial not in proper(ada.get("/admin/accounts/new%20sup")), "shown once"
    browser = as_("")
    signed_in = browser.post("/sign-in", data={"name": "new sup", "password": initial})
    cookie = {"Cookie": signed_in.headers["set-cookie"].split(";")[0]}
    for path in ("/", "/sessions", "/alerts", "/counsellors"):
        answer = browser.get(path, headers=cookie)
        assert (answer.status_code, answer.headers["location"]) == (303, "/password")
    answer = browser.get("/api/v1/sessions", headers=cookie)
    assert answer.json()["type"].endswith("password-change-needed")
    assert "administrator has chosen" in browser.get("/password", headers=cookie).text
    new = {"current": initial, "new": "wooden-harp-9-lantern", "repeated": "wooden-harp-9-lantern"}
    changed = browser.post(
        "/password", data=new, headers={**cookie, "Origin": "http://rapport.test"}
    )
    assert changed.status_code == 200, changed.text
    cookie = {"Cookie": changed.headers["set-cookie"].split(";")[0]}
    assert browser.get("/alerts", headers=cookie).status_code == 200


def test_a_change_needs_the_administrators_password(ada: Client, filled: Store) -> None:
    assert "your password is wrong" in proper(send(ada, "/sue/disable", password="wrong"), 422)
    assert ada.post("/admin/accounts/sue/disable").status_code == 422
    assert People(filled).find("sue") is not None
    assert changes(filled) == []


def test_without_a_password_of_ones_own_nothing_can_be_changed(as_: As, filled: Store) -> None:
    answer = send(as_("ada"), "", name="x", role="analyst")
    assert "no password in Rapport" in proper(answer, 422)
    assert People(filled).find("x") is None


def test_requests_from_other_sites_change_nothing(ada: Client, as_: As, filled: Store) -> None:
    browser = as_("")
    signed_in = browser.post("/sign-in", data={"name": "ada", "password": PASSWORD})
    assert signed_in.headers["location"] == "/admin", "an administrator's home"
    cookie = {"Cookie": signed_in.headers["set-cookie"].split(";")[0]}
    answer = browser.post(
        "/admin/accounts/sue/disable",
        data={"password": PASSWORD},
        headers={**cookie, "Origin": "https://elsewhere.example"},
    )
    assert answer.status_code == 403
    assert People(filled).find("sue") is not None


def test_a_token_is_shown_once_and_can_be_revoked(ada: Client, filled: Store) -> None:
    page = proper(send(ada, "/ana/token", label="report", right="read-scores", days="30"))
    [token] = SECRET.findall(page)
    person = People(filled).find_by_token(token)
    assert person is not None
    assert (person.name, person.rights) == ("ana", frozenset({Right.READ_SCORES}))
    assert token not in proper(ada.get("/admin/accounts/ana"))
    assert "report" in proper(ada.get("/admin/accounts/ana"))
    proper(send(ada, "/ana/revoke", label="report"))
    assert People(filled).find_by_token(token) is None
    assert changes(filled) == [
        "revoked tokens of ana: report",
        "new token for ana: report, read-scores, 30 days",
    ]


@pytest.mark.parametrize("right", ["read-text", "act"])
def test_tokens_that_read_text_or_act_are_not_made_here(
    ada: Client, filled: Store, right: str
) -> None:
    answer = send(ada, "/sue/token", label="t", right=right, days="30")
    assert "rapport people token" in proper(answer, 422)
    assert changes(filled) == []


def test_sign_ins_are_ended_and_accounts_disabled(ada: Client, filled: Store) -> None:
    people = People(filled)
    token = people.sign_in("sue", datetime(2099, 1, 1, tzinfo=UTC))
    program = people.create_token("sue", "program")
    assert "1 sign-ins ended" in proper(send(ada, "/sue/sign-out"))
    assert people.find_by_token(token) is None
    assert people.find_by_token(program) is not None
    assert "sue is disabled" in proper(send(ada, "/sue/disable"))
    assert people.find_by_token(program) is None
    assert changes(filled) == ["disabled sue", "ended 1 sign-ins of sue"]


def test_administrators_do_not_lock_themselves_out(ada: Client, filled: Store) -> None:
    for action in ("disable", "password"):
        proper(send(ada, f"/ada/{action}"), 422)
    assert People(filled).find("ada") is not None


def test_a_supervisors_team_is_changed(ada: Client, filled: Store) -> None:
    proper(send(ada, "/sue/teams", team="south"))
    found = People(filled).find("sue")
    assert found is not None
    assert (found.team, found.all_teams) == ("south", False)
    assert "south" in proper(ada.get("/admin/teams"))
    answer = send(ada, "/sue/teams", team="")
    assert answer.status_code == 422, "all teams must be chosen explicitly"
    assert "needs either a team or all teams" in answer.text
    proper(send(ada, "/sue/teams", team="", all_teams="true"))
    found = People(filled).find("sue")
    assert found is not None
    assert (found.team, found.all_teams) == (None, True)


def test_the_audit_trail_can_be_filtered_and_records_its_reading(
    ada: Client, as_: As, filled: Store
) -> None:
    as_("sue").get("/sessions/north-0")
    as_("pat").get("/sessions/north-1")
    page = proper(ada.get("/admin/audit?by=sue&action=read+transcript"))
    assert "north-0" in page
    assert "<td>pat</td>" not in page
    [newest] = audit.latest(filled, limit=1)
    assert (newest.person, newest.action) == ("ada", "read audit")
    proper(ada.get("/admin/audit?action=nothing"), 422)


def test_alerts_lead_analysts_and_administrators_nowhere(as_: As, filled: Store) -> None:
    for name in ("ana", "ada"):
        page = proper(as_(name).get("/"))
        assert "#alerts" not in page
        assert 'href="/sessions/' not in page
        refused = proper(as_(name).get("/sessions/north-0"), 403)
        assert '<nav aria-label="Main">' in refused
    assert "ask an administrator" not in proper(as_("ada").get("/sessions/north-0"), 403)
    assert 'href="/admin"' in proper(as_("ada").get("/alerts"), 403)
    assert 'href="/analytics"' in proper(as_("ana").get("/nothing"), 404)


def test_the_introduction_has_three_steps_and_is_shown_until_it_is_closed(
    as_: As, filled: Store
) -> None:
    for name, home in (("sue", "/"), ("noor", "/me"), ("ana", "/"), ("ada", "/admin")):
        person = as_(name)
        for step in (1, 2, 3):
            page = proper(person.get(f"{home}?tour={step}"))
            assert f"Introduction, {step} of 3" in page
        closed = person.post("/tour/close", data={"to": home})
        assert (closed.status_code, closed.headers["location"]) == (303, home)
        assert "Introduction" not in proper(person.get(home))


def test_every_word_has_a_help_page_that_pages_link(as_: As) -> None:
    page = proper(as_("noor").get("/help"))
    topics = re.findall(r'href="/help/(\w+)"', page)
    assert set(topics) >= {"er", "ip", "ex", "index", "interval", "alert", "risk"}
    for topic in topics:
        proper(as_("ana").get(f"/help/{topic}"))
    session = proper(as_("sue").get("/sessions/north-0"))
    assert {"er", "ip", "ex", "risk"} <= set(re.findall(r'href="/help/(\w+)"', session))
    assert as_("sue").get("/help/nothing").status_code == 404


def test_every_administrator_sees_who_was_made_a_reader(
    ada: Client, as_: As, filled: Store
) -> None:
    People(filled).add(Person("abe", PersonRole.ADMIN), None)
    send(ada, "", name="quiet", role="analyst", sign_in="password")
    assert "New access to transcripts" not in as_("abe").get("/admin").text
    send(ada, "", name="mole", role="supervisor", all_teams="true", sign_in="password")
    send(ada, "/sue/password")
    send(ada, "/ben/teams", team="south")
    for admin in ("abe", "ada"):
        page = proper(as_(admin).get("/admin"))
        shown = page.partition("New access to transcripts")[2].partition("</section>")[0]
        for change in ("added mole as supervisor of all teams", "initial password for sue"):
            assert f"{change}, by ada" in shown
        assert "ben is supervisor of south, by ada" in shown
        assert "quiet" not in shown
    AccountChanges(filled, "(command line)").new_token("sue", "t", 1, rights=[Right.READ_TEXT])
    assert "new token for sue: t, read-text" in as_("abe").get("/admin").text
    later = datetime.now(UTC) + SHOWN_FOR
    assert grants(filled, later + timedelta(minutes=1)) == []


def test_a_typo_begins_no_team(ada: Client, filled: Store) -> None:
    answer = send(ada, "", name="new sup", role="supervisor", team="nroth")
    assert answer.status_code == 422
    assert "there is no team nroth" in answer.text
    answer = send(ada, "", name="new sup", role="supervisor", new_team="North")
    assert answer.status_code == 422
    assert "there is a team north: choose it from the list" in answer.text
    assert People(filled).find("new sup") is None
    proper(send(ada, "", name="new sup", role="supervisor", new_team="east"))
    assert "<option selected>east</option>" in proper(ada.get("/admin/accounts/new%20sup"))


def test_a_refused_form_keeps_what_was_typed(ada: Client) -> None:
    form = {"name": "new sup", "role": "study", "team": "south", "sign_in": "other"}
    answer = ada.post("/admin/accounts", data={"password": "wrong", **form})
    assert answer.status_code == 422
    for kept in ('value="new sup"', "<option selected>study", "<option selected>south"):
        assert kept in answer.text
    assert re.search(r'value="other" checked', answer.text)
    form = {"label": "dashboards", "right": "read-scores", "days": "365"}
    answer = ada.post("/admin/accounts/ana/token", data={"password": "wrong", **form})
    assert "<details open><summary" in answer.text
    assert 'value="dashboards"' in answer.text
    assert '<option value="365" selected>' in answer.text


def test_retention_shows_what_the_next_purge_deletes(ada: Client, filled: Store) -> None:
    page = proper(ada.get("/admin/retention"))
    with filled.reading() as connection:
        texts = connection.scalar(sa.select(sa.func.count()).select_from(tables.turns))
    assert f'<th scope="row">texts</th><td>{texts}</td><td>0</td><td>{texts}</td>' in page
    old = datetime.now(UTC) - timedelta(days=4000)
    with filled.transaction() as connection:
        connection.execute(sa.update(tables.turns).values(stored_at=old))
    page = proper(ada.get("/admin/retention"))
    assert f'<th scope="row">texts</th><td>{texts}</td><td>{texts}</td><td>0</td>' in page
    assert "Workers refuse this purge: NOTHING IS PURGED" in page


def test_every_setting_says_where_it_comes_from(
    as_: As, filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAPPORT_KEEP_TEXT_DAYS", "44")
    found = {each.variable: each for each in shown_settings(Settings())}
    assert found["RAPPORT_KEEP_TEXT_DAYS"].source == "environment"
    assert found["RAPPORT_KEEP_SCORES_DAYS"].source == "default"
    changed = Settings().model_copy(update={"keep_scores_days": 800})
    found = {each.variable: each for each in shown_settings(changed)}
    assert found["RAPPORT_KEEP_SCORES_DAYS"].source == "command"
    page = proper(as_("ada").get("/admin/settings"))
    assert "<code>RAPPORT_DATABASE_URL</code>" in page
