"""Cursor paging while sessions are added: no item is repeated or skipped."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from stream_app import bootstrap
from stream_app.settings import Settings
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.database.tables import metadata
from stream_app.store.stream.repository import Store
from tests.store import databases
from tests.store.batches import prepare, process, turn
from tests.store.databases import open_store

Ask = Callable[[dict[str, Any]], httpx.Response]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Ask]]:
    url = databases.sqlite(tmp_path_factory.mktemp("paging") / "rapport.db")
    store = open_store(url)
    prepare(store)
    People(store).add(Person("sue", PersonRole.SUPERVISOR, all_teams=True), None)
    token = People(store).create_token("sue", "test")
    chosen = Settings().model_copy(update={"database_url": SecretStr(url)})
    app = httpx.ASGITransport(bootstrap.web(chosen))  # without its lifespan: no broker is needed

    async def ask(params: dict[str, Any]) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(
            transport=app, base_url="http://rapport/api/v1", headers=headers
        ) as client:
            return await client.get("/sessions", params=params)

    yield store, lambda params: asyncio.run(ask(params))
    store.close()


def add(store: Store, session_id: str, minute: int) -> None:
    at = f"2026-01-05T10:{minute:02}:00Z"
    store.commit(process([turn(seq, session_id=session_id, occurred_at=at) for seq in range(2)]))


def empty(store: Store) -> None:
    with store.transaction() as connection:
        for name in ("sessions", "session_states", "session_scores", "turns", "turn_scores"):
            connection.execute(metadata.tables[name].delete())
        for name in ("alerts", "session_speakers", "outbox"):
            connection.execute(metadata.tables[name].delete())


MINUTES = st.lists(st.integers(0, 59), min_size=0, max_size=7)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    before=MINUTES,
    between=st.lists(MINUTES, max_size=3),
    limit=st.integers(1, 3),
    order=st.sampled_from(["risk", "activity", "start", "id"]),
)
def test_pages_contain_each_session_once_while_others_are_added(
    opened: tuple[Store, Ask],
    before: list[int],
    between: list[list[int]],
    limit: int,
    order: str,
) -> None:
    store, ask = opened
    empty(store)
    for number, minute in enumerate(before):
        add(store, f"before-{number}", minute)
    seen: list[str] = []
    sorted_by: list[object] = []
    cursor: str | None = None
    for page_number in range(100):
        params: dict[str, str | int] = {"limit": limit, "order": order}
        page = ask(params | ({"cursor": cursor} if cursor else {})).json()
        assert len(page["items"]) <= limit
        seen += [card["session_id"] for card in page["items"]]
        key = {"risk": "low_empathy_risk", "activity": "last_activity_at", "start": "started_at"}
        sorted_by += [card[key.get(order, "session_id")] for card in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        for number, minute in enumerate(between[page_number] if page_number < len(between) else []):
            add(store, f"added-{page_number}-{number}", minute)
    assert len(seen) == len(set(seen))
    assert {f"before-{number}" for number in range(len(before))} <= set(seen)
    assert sorted_by == sorted(sorted_by, reverse=order != "id")  # type: ignore[type-var]


def test_a_cursor_of_one_order_is_refused_by_another(opened: tuple[Store, Ask]) -> None:
    store, ask = opened
    empty(store)
    for number in range(3):
        add(store, f"s-{number}", number)
    page = ask({"limit": 1, "order": "start"}).json()
    for order in ("risk", "activity", "id"):
        params = {"cursor": page["next_cursor"], "order": order}
        answer = ask(params)
        assert answer.status_code == 400
        assert answer.json()["type"] == "urn:rapport:problem:bad-cursor"
