"""Sign-in: cookies, tokens, cross-site requests and password guessing."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from stream_app.store.accounts import audit
from stream_app.store.accounts.people import People
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.accounts.sign_in_throttle import SignInThrottle, TooManyAttempts
from stream_app.store.stream.repository import Store
from stream_app.work.account_changes import AccountChanges
from stream_app.work.passwords import hash_password
from tests.web.people.conftest import As
from tests.web.server import serving

PASSWORD = "long enough to pass"


def signed_in_cookie(store: Store, as_: As) -> dict[str, str]:
    """Sign in as Pat and return the cookie."""
    People(store).set_password("pat", hash_password(PASSWORD))
    answer = as_("").post("/sign-in", data={"name": "pat", "password": PASSWORD})
    assert answer.status_code == 303
    flags = answer.headers["set-cookie"].lower()
    assert "httponly" in flags
    assert "samesite=strict" in flags
    return {"Cookie": f"rapport={answer.cookies['rapport']}"}


@pytest.mark.parametrize(("name", "home"), [("noor", "/me"), ("pat", "/"), ("sue", "/")])
def test_people_begin_at_the_page_of_their_role(
    filled: Store, as_: As, name: str, home: str
) -> None:
    People(filled).set_password(name, hash_password(PASSWORD))
    form = {"name": name, "password": PASSWORD}
    assert as_("").post("/sign-in", data=form).headers["location"] == home
    wanted = as_("").post("/sign-in", data={**form, "to": "/sessions"})
    assert wanted.headers["location"] == "/sessions"


def reads(as_: As, cookie: dict[str, str]) -> int:
    return as_("").get("/api/v1/me", headers=cookie).status_code


def test_signing_out_invalidates_copies_of_the_cookie(filled: Store, as_: As) -> None:
    cookie = signed_in_cookie(filled, as_)
    other = {
        "Cookie": "rapport="
        + as_("").post("/sign-in", data={"name": "pat", "password": PASSWORD}).cookies["rapport"]
    }
    assert (reads(as_, cookie), reads(as_, other)) == (200, 200)
    assert as_("").post("/sign-out", headers=cookie).status_code == 303
    assert (reads(as_, cookie), reads(as_, other)) == (
        401,
        200,
    )  # the other browser stays signed in


def test_a_new_password_ends_all_sign_ins_but_no_tokens(filled: Store, as_: As) -> None:
    cookie, program = signed_in_cookie(filled, as_), as_("pat")
    People(filled).set_password("pat", hash_password("another long one"))
    assert reads(as_, cookie) == 401
    assert program.get("/api/v1/me").status_code == 200


def test_a_disabled_account_is_signed_out_at_once(filled: Store, as_: As) -> None:
    cookie = signed_in_cookie(filled, as_)
    People(filled).disable("pat")
    assert reads(as_, cookie) == 401


def test_a_lost_token_can_be_revoked(filled: Store, tmp_path: Path) -> None:
    people = People(filled)
    lost, other = people.create_token("pat", "laptop"), people.create_token("pat", "shift report")
    environment = {**os.environ, "RAPPORT_DATABASE_URL": f"sqlite:///{tmp_path}/rapport.db"}
    command = [sys.executable, "-m", "stream_app.cli", "people", "revoke", "pat", "--label"]
    assert subprocess.run([*command, "laptop"], env=environment, check=False).returncode == 0
    assert people.find_by_token(lost) is None
    assert people.find_by_token(other) is not None
    again = subprocess.run([*command, "laptop"], env=environment, check=False, capture_output=True)
    assert again.returncode != 0
    assert b"pat has no token with the label laptop" in again.stderr + again.stdout


def test_account_changes_are_audited(filled: Store, as_: As) -> None:
    changes = AccountChanges(filled, audit.COMMAND_LINE)
    changes.add("eve", PersonRole.ADMIN, None, None, PASSWORD)
    changes.change_password("eve", PASSWORD)
    token = changes.new_token("eve", "laptop", 1)
    changes.revoke("eve", "laptop")
    changes.disable("eve")
    trail = as_("ada").get("/api/v1/audit", params={"action": "change account"}).json()["items"]
    assert [each["detail"] for each in reversed(trail)] == [
        "added eve as admin",
        "new password for eve",
        "new token for eve: laptop, read-scores, 1 days",
        "revoked tokens of eve: laptop",
        "disabled eve",
    ]
    assert token not in str(trail)


def test_signing_in_deletes_expired_tokens(filled: Store, as_: As) -> None:
    people, now = People(filled), datetime.now(UTC)
    over = people.sign_in("pat", now - timedelta(seconds=1))
    good = people.sign_in("pat", now + timedelta(hours=1))
    assert people.find_by_token(over) is None
    people.sign_in("pat", now + timedelta(hours=1))
    with filled.reading() as connection:
        kept = connection.exec_driver_sql("select count(*) from access_tokens").scalar()
    assert kept == 2
    assert people.find_by_token(good) is not None


@pytest.mark.parametrize("path", ["/sign-in", "/sign-out", "/appearance", "/alerts/x/note"])
def test_cross_site_form_posts_are_rejected(filled: Store, as_: As, path: str) -> None:
    cookie = signed_in_cookie(filled, as_)
    form = {"name": "pat", "password": PASSWORD, "chosen": "dark", "note": "n"}
    for origin in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        answer: httpx.Response = as_("").post(path, data=form, headers={**cookie, **origin})
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
    assert reads(as_, cookie) == 200


def test_behind_a_proxy_that_changes_the_host_the_refusal_names_the_cause(as_: As) -> None:
    """Over plain HTTP browsers state their page's origin only, which is then the proxy's."""
    form = {"name": "pat", "password": PASSWORD}
    answer = as_("").post("/sign-in", data=form, headers={"Origin": "http://rapport.lan:8000"})
    assert answer.status_code == 403
    assert "a proxy does not pass on the header Host" in answer.text


def test_concurrent_guesses_count_like_sequential_ones(filled: Store, as_: As) -> None:
    People(filled).set_password("pat", hash_password(PASSWORD))
    browser, form = as_(""), {"name": "pat", "password": "wrong"}
    with ThreadPoolExecutor(20) as pool:
        asked = [pool.submit(browser.post, "/sign-in", data=form) for _ in range(20)]
        found = Counter(each.result().status_code for each in asked)
    assert found[401] <= 6  # one delay of a second may expire meanwhile
    assert found[401] + found[429] + found[503] == 20


def sign_in(as_: As, name: str, password: str = "wrong") -> int:
    return as_("").post("/sign-in", data={"name": name, "password": password}).status_code


def test_unknown_names_from_an_address_do_not_lock_out_others_there(filled: Store, as_: As) -> None:
    """Many people may share an address, and Pat has entered no wrong password."""
    People(filled).set_password("pat", hash_password(PASSWORD))
    attempts = SignInThrottle(filled)
    for number in range(150):
        attempts.begin(f"nobody-{number}", "127.0.0.1")
    assert sign_in(as_, "pat", PASSWORD) == 303


def test_wrong_passwords_from_elsewhere_do_not_lock_out_known_addresses(
    filled: Store, as_: As
) -> None:
    People(filled).set_password("pat", hash_password(PASSWORD))
    assert sign_in(as_, "pat", PASSWORD) == 303
    attempts = SignInThrottle(filled)
    for number in range(101):
        with suppress(TooManyAttempts):
            attempts.begin("pat", f"10.0.0.{number}")
    with pytest.raises(TooManyAttempts):
        attempts.begin("pat", "10.0.1.1")
    assert sign_in(as_, "pat", PASSWORD) == 303


def test_a_full_queue_is_rejected_immediately(filled: Store, as_: As, tmp_path: Path) -> None:
    app = as_("").app
    services = app.state.services
    going_on = threading.Event()

    async def ask() -> httpx.Response:
        waiting = [
            asyncio.create_task(services.sign_in_queue.run(going_on.wait)) for _ in range(18)
        ]
        await asyncio.sleep(0.05)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://rapport.test") as web:
            began = time.monotonic()
            form = {"name": "pat", "password": PASSWORD}
            answer = await web.post("/sign-in", data=form)
            assert time.monotonic() - began < 1.0
            assert (await web.get("/healthz")).status_code == 200
        going_on.set()
        await asyncio.gather(*waiting)
        return answer

    answer = asyncio.run(ask())
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert "Too many people are signing in" in answer.text
    assert sign_in(as_, "pat") == 401, "the queue accepts sign-ins again"


@pytest.mark.slow
def test_a_flood_of_wrong_passwords_does_not_block_health_or_pages(tmp_path: Path) -> None:
    with serving(tmp_path) as web, ThreadPoolExecutor(120) as pool, httpx.Client() as probe:
        token = {"Authorization": f"Bearer {web.tokens['sue']}"}

        def guess(number: int) -> int:
            form = {"name": f"nobody-{number}", "password": "wrong"}
            return httpx.post(f"{web.url}/sign-in", data=form, timeout=60).status_code

        asked = [pool.submit(guess, number) for number in range(120)]
        slowest = 0.0
        while not all(each.done() for each in asked):
            for path in ("/healthz", "/readyz", "/api/v1/me"):
                began = time.monotonic()
                answer = probe.get(f"{web.url}{path}", headers=token, timeout=60)
                assert answer.status_code == 200, answer.text
                slowest = max(slowest, time.monotonic() - began)
        found = Counter(each.result() for each in asked)
    assert found.keys() <= {401, 503}
    assert found[503] > 0
    assert slowest < 5.0, "it was 27 s without the queue"
