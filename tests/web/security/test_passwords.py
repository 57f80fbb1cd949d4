"""Passwords that are easy to guess are refused wherever one is set; people change their own."""

import httpx
import pytest

from stream_app.store.accounts import audit
from stream_app.store.accounts.people import People, PersonError
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.stream.repository import Store
from stream_app.work.account_changes import AccountChanges
from stream_app.work.passwords import hash_new_password, hash_password, verify_password
from tests.web.people.client import Client
from tests.web.people.conftest import As

OLD = "seven grey herons waiting"
NEW = "a kettle under the tram"
WEAK = ("too short", "passwordpassword", "123456789012", "qwertyuiop12", "iloveyou2024!", "x" * 257)


pytestmark = pytest.mark.usefixtures("cheap_hashes")


def cookie_of(answer: httpx.Response) -> dict[str, str]:
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}


def change(client: Client, cookie: dict[str, str], **fields: str) -> httpx.Response:
    form = {"current": OLD, "new": NEW, "repeated": NEW, **fields}
    own_page = {"Sec-Fetch-Site": "same-origin"}
    return client.post("/password", data=form, headers=cookie | own_page)


@pytest.fixture
def cookie(filled: Store, as_: As) -> dict[str, str]:
    """Pat's, signed in with the old password."""
    People(filled).set_password("pat", hash_password(OLD))
    return cookie_of(as_("").post("/sign-in", data={"name": "pat", "password": OLD}))


@pytest.mark.parametrize("weak", WEAK)
def test_easily_guessed_passwords_are_refused_by_the_commands(filled: Store, weak: str) -> None:
    changes = AccountChanges(filled, audit.COMMAND_LINE)
    with pytest.raises(PersonError, match="password"):
        changes.add("eve", PersonRole.ADMIN, None, None, weak)
    with pytest.raises(PersonError, match="password"):
        changes.change_password("pat", weak)
    assert People(filled).find("eve") is None


@pytest.mark.parametrize(
    "weak",
    [
        "Rapport2026!Rapport",
        "Rapport-Summer-2026",
        "R4pp0rt_Autumn_26!!",
        "November2026November",
        "Christmas-2026-12-24",
        "WinterWinter!2027",
        "Welcome2Rapport!2026",
        "counselling-spring-27",
    ],
)
def test_names_of_the_product_and_the_season_are_known(weak: str) -> None:
    with pytest.raises(PersonError, match="too easy to guess"):
        hash_new_password(weak, "pat")


STRONG = (NEW, OLD, "winter in a kettle of herons", "8471-2093-5518-2237-66", "ÄÖÜ сорок герон")


@pytest.mark.parametrize("strong", STRONG)
def test_other_passwords_are_accepted(strong: str) -> None:
    assert verify_password(strong, hash_new_password(strong, "pat"))


def test_the_own_name_makes_a_password_easier_to_guess() -> None:
    name = "zwxqvkjhpfgm"
    with pytest.raises(PersonError, match="too easy to guess"):
        hash_new_password(name, name)
    hashed = hash_new_password(name, "pat")
    assert verify_password(name, hashed)


def test_people_change_their_own_password(filled: Store, as_: As, cookie: dict[str, str]) -> None:
    other = cookie_of(as_("").post("/sign-in", data={"name": "pat", "password": OLD}))
    answer = change(as_(""), cookie)
    assert answer.status_code == 200
    assert "Your password is changed" in answer.text
    for old in (cookie, other):
        assert as_("").get("/api/v1/me", headers=old).status_code == 401
    assert as_("").get("/api/v1/me", headers=cookie_of(answer)).status_code == 200
    assert as_("").post("/sign-in", data={"name": "pat", "password": OLD}).status_code == 401
    assert as_("").post("/sign-in", data={"name": "pat", "password": NEW}).status_code == 303
    [entry] = [each for each in audit.latest(filled) if each.action == "change account"]
    assert (entry.person, entry.detail) == ("pat", "own password")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"current": "wrong"}, "current password is wrong"),
        ({"repeated": "something else here"}, "passwords differ"),
        ({"new": "passwordpassword", "repeated": "passwordpassword"}, "too easy to guess"),
        ({"new": "short", "repeated": "short"}, "12 to 256 characters"),
    ],
)
def test_a_refused_change_says_why_and_changes_nothing(
    as_: As, cookie: dict[str, str], fields: dict[str, str], words: str
) -> None:
    answer = change(as_(""), cookie, **fields)
    assert answer.status_code == 422
    assert words in answer.text
    assert as_("").get("/api/v1/me", headers=cookie).status_code == 200


def test_guessing_the_current_password_is_throttled(as_: As, cookie: dict[str, str]) -> None:
    statuses = [change(as_(""), cookie, current="wrong").status_code for _ in range(7)]
    assert statuses[0] == 422
    assert statuses[-1] == 429


def test_accounts_without_a_password_have_no_form(as_: As) -> None:
    page = as_("sue").get("/password").text
    assert "no password in Rapport" in page
    assert 'name="current"' not in page
