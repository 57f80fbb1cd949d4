"""An exception between two rows of a result leaves the requests after it as good as new.

In a real process, whose database has a row that cannot be converted for a while.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
import sqlalchemy as sa

from stream_app.store.accounts.people import People
from stream_app.store.stream.repository import Store
from stream_app.work.passwords import hash_password
from tests.store.batches import turn
from tests.web.server import Web

PASSWORD = "Grey-Lantern-Orchard-47"
DAMAGED = "/api/v1/sessions?limit=50", "/api/v1/exports/sessions?format=jsonl", "/sessions"
AS_OFTEN = 20
"""More requests than a process has connections."""
ONE_REQUEST = httpx.Limits(max_keepalive_connections=0)
"""The server closes a connection after an unexpected error."""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    made = Web(tmp_path_factory.mktemp("web"))
    People(made.store).set_password("sue", hash_password(PASSWORD))
    for name in ("s-1", "s-2", "s-3"):
        made.commit(*(turn(seq, session_id=name) for seq in range(2)))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@contextmanager
def damaged(store: Store) -> Iterator[None]:
    """The time of one session is none within the ``with`` block."""
    time = sa.text("SELECT last_activity_at FROM session_scores WHERE session_id = 's-2'")
    change = sa.text("UPDATE session_scores SET last_activity_at = :at WHERE session_id = 's-2'")
    with store.engine.begin() as connection:
        right = connection.scalar(time)
        connection.execute(change, {"at": "no time"})
    try:
        yield
    finally:
        with store.engine.begin() as connection:
            connection.execute(change, {"at": right})


def failed(browser: httpx.Client, path: str) -> bool:
    """Whether a request fails: with an error, or in the middle of a streamed answer."""
    try:
        return browser.get(path).status_code == 500
    except httpx.RemoteProtocolError:
        return True


@pytest.mark.parametrize("path", DAMAGED)
def test_later_requests_answer_write_and_see_the_newest_rows(web: Web, path: str) -> None:
    headers = {"Authorization": f"Bearer {web.tokens['sue']}"}
    form = {"name": "sue", "password": PASSWORD}
    newest = f"new-{DAMAGED.index(path)}"
    with (
        web.anonymous_client(headers=headers) as client,
        web.anonymous_client(limits=ONE_REQUEST) as browser,
    ):
        assert browser.post("/sign-in", data=form).status_code == 303
        with damaged(web.store):
            assert all(failed(browser, path) for _ in range(AS_OFTEN))
            assert httpx.get(f"{web.url}/readyz").status_code == 200
        web.commit(turn(0, session_id=newest))
        for _ in range(AS_OFTEN):
            found = client.get("/api/v1/sessions", params={"limit": 50})
            assert found.status_code == 200
            assert {"s-2", newest} <= {each["session_id"] for each in found.json()["items"]}
            assert browser.get("/").status_code == 200
        assert browser.post("/sign-in", data=form).status_code == 303
        assert httpx.get(f"{web.url}/readyz").status_code == 200
