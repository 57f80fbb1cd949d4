"""Requests and sessions larger than any legitimate one."""

from contextlib import ExitStack

import pytest

from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store
from stream_app.web.http.body_limit import MAX_BODY_BYTES
from stream_app.web.live.live_hub import MAX_CLIENTS_PER_PERSON, Hub, Subscription, TooManyClients
from tests.store import batches
from tests.web.people.conftest import As


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/mutes", {"json": {"reason": "x" * MAX_BODY_BYTES}}),
        ("/sign-in", {"data": {"name": "x" * MAX_BODY_BYTES, "password": "x"}}),
        ("/appearance", {"data": {"chosen": "x" * MAX_BODY_BYTES}}),
    ],
)
def test_long_bodies_are_rejected(
    filled: Store,
    as_: As,
    path: str,
    body: dict[str, object],
) -> None:
    answer = as_("").post(path, **body)
    assert answer.status_code == 413
    assert answer.headers["content-type"].startswith(
        "application/problem+json" if path.startswith("/api") else "text/html"
    )


def test_a_page_of_a_session_with_huge_seqs_stays_small(filled: Store, as_: As) -> None:
    last = 2**31 - 1
    turns = [
        batches.turn(seq, session_id="gap", role="counsellor" if seq % 2 else "client")
        for seq in (0, 1, 2, 3, last - 1, last)
    ]
    filled.commit(batches.process([*turns, batches.end(session_id="gap")]))
    page = as_("pat").get("/sessions/gap")
    assert page.status_code == 200
    assert len(page.content) < 100_000
    assert f"?page={last // 200}" in page.text
    assert len(as_("pat").get("/sessions/gap?page=10000000").content) < 100_000


def test_one_person_cannot_use_up_all_live_streams() -> None:
    hub = Hub()
    with ExitStack() as stack:
        for _ in range(MAX_CLIENTS_PER_PERSON):
            hub.check_room("pat")
            stack.enter_context(hub.subscribe(Subscription(ALL_SESSIONS, person="pat"), None))
        with pytest.raises(TooManyClients):
            hub.check_room("pat")
        hub.check_room("sam")
    hub.check_room("pat")
