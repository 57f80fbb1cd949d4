"""What a copied cookie is worth, and what another site can do to a browser."""

import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from stream_app.commands import people as accounts
from stream_app.settings import Settings
from stream_app.store.people import People, PersonRole
from stream_app.store.repository import Store
from stream_app.web.attempts import Attempts
from stream_app.web.auth import hash_password
from tests.web.people.conftest import As

PASSWORD = "long enough to pass"


def signed_in(store: Store, as_: As) -> dict[str, str]:
    """The cookie of a browser in which Pat signed in."""
    People(store).set_password("pat", hash_password(PASSWORD))
    answer = as_("").post("/sign-in", data={"name": "pat", "password": PASSWORD})
    assert answer.status_code == 303
    flags = answer.headers["set-cookie"].lower()
    assert "httponly" in flags
    assert "samesite=strict" in flags
    return {"Cookie": f"rapport={answer.cookies['rapport']}"}


def reads(as_: As, cookie: dict[str, str]) -> int:
    return as_("").get("/api/v1/me", headers=cookie).status_code


def test_a_copied_cookie_is_worth_nothing_after_signing_out(filled: Store, as_: As) -> None:
    cookie = signed_in(filled, as_)
    other = {
        "Cookie": "rapport="
        + as_("").post("/sign-in", data={"name": "pat", "password": PASSWORD}).cookies["rapport"]
    }
    assert (reads(as_, cookie), reads(as_, other)) == (200, 200)
    assert as_("").post("/sign-out", headers=cookie).status_code == 303
    assert (reads(as_, cookie), reads(as_, other)) == (401, 200)  # the other browser stays


def test_a_new_password_signs_every_browser_out_and_keeps_tokens(filled: Store, as_: As) -> None:
    cookie, program = signed_in(filled, as_), as_("pat")
    People(filled).set_password("pat", hash_password("another long one"))
    assert reads(as_, cookie) == 401
    assert program.get("/api/v1/me").status_code == 200


def test_a_disabled_account_is_signed_out_at_once(filled: Store, as_: As) -> None:
    cookie = signed_in(filled, as_)
    People(filled).disable("pat")
    assert reads(as_, cookie) == 401


def test_a_lost_token_can_be_made_worthless(filled: Store, tmp_path: Path) -> None:
    people = People(filled)
    lost, other = people.new_token("pat", "laptop"), people.new_token("pat", "shift report")
    environment = {**os.environ, "RAPPORT_DATABASE_URL": f"sqlite:///{tmp_path}/rapport.db"}
    command = [sys.executable, "-m", "stream_app.cli", "people", "revoke", "pat", "--label"]
    assert subprocess.run([*command, "laptop"], env=environment, check=False).returncode == 0
    assert people.of_token(lost) is None
    assert people.of_token(other) is not None
    again = subprocess.run([*command, "laptop"], env=environment, check=False, capture_output=True)
    assert again.returncode != 0
    assert b"pat has no token with the label laptop" in again.stderr + again.stdout


def test_changes_of_accounts_stand_in_the_audit_trail(filled: Store, as_: As) -> None:
    url = SecretStr(filled.engine.url.render_as_string())
    settings = Settings().model_copy(update={"database_url": url})
    accounts.add(settings, "eve", PersonRole.ADMIN, None, None, PASSWORD)
    accounts.change_password(settings, "eve", PASSWORD)
    token = accounts.new_token(settings, "eve", "laptop", 1)
    accounts.revoke(settings, "eve", "laptop")
    accounts.disable(settings, "eve")
    trail = as_("ada").get("/api/v1/audit", params={"action": "change account"}).json()["items"]
    assert [each["detail"] for each in reversed(trail)] == [
        "added eve as admin",
        "new password for eve",
        "new token for eve: laptop",
        "revoked tokens of eve: laptop",
        "disabled eve",
    ]
    assert token not in str(trail)


def test_signing_in_sweeps_away_what_is_over(filled: Store, as_: As) -> None:
    people, now = People(filled), datetime.now(UTC)
    over = people.sign_in("pat", now - timedelta(seconds=1))
    good = people.sign_in("pat", now + timedelta(hours=1))
    assert people.of_token(over) is None
    people.sign_in("pat", now + timedelta(hours=1))
    with filled.reading() as connection:
        kept = connection.exec_driver_sql("select count(*) from access_tokens").scalar()
    assert kept == 2
    assert people.of_token(good) is not None


@pytest.mark.parametrize("path", ["/sign-in", "/sign-out", "/appearance", "/alerts/x/note"])
def test_another_site_can_post_none_of_the_forms(filled: Store, as_: As, path: str) -> None:
    cookie = signed_in(filled, as_)
    form = {"name": "pat", "password": PASSWORD, "chosen": "dark", "note": "n"}
    for origin in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        answer: httpx.Response = as_("").post(path, data=form, headers={**cookie, **origin})
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
    assert reads(as_, cookie) == 200


def test_guesses_at_the_same_time_count_like_one_after_the_other(filled: Store, as_: As) -> None:
    People(filled).set_password("pat", hash_password(PASSWORD))
    browser, form = as_(""), {"name": "pat", "password": "wrong"}
    with ThreadPoolExecutor(20) as pool:
        asked = [pool.submit(browser.post, "/sign-in", data=form) for _ in range(20)]
        found = Counter(each.result().status_code for each in asked)
    assert found[401] <= 6  # one wait of a second may pass meanwhile
    assert found[401] + found[429] == 20


def test_right_passwords_do_not_add_up_to_a_wait() -> None:
    attempts, keys = Attempts(lambda: 0.0), {"pat@here": 5, "pat": 100, "@here": 100}
    for _ in range(300):
        attempts.begin(keys)
        attempts.succeeded("pat@here", keys)
    attempts.begin(keys)
