"""Times at the ends of the calendar, as earlier releases stored them, are readable everywhere.

PostgreSQL's time zone is not UTC here: `server` runs in Auckland.
"""

import io
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from tests.store import databases
from tests.store.batches import end, turn
from tests.web.api.test_exports import read
from tests.web.in_process import InProcessWeb
from tests.web.server import Web

TIMES = {
    "last": "9999-12-31T23:59:30Z",
    "first": "0001-01-01T00:00:30Z",
    "now": "2026-01-05T10:00:00Z",
}
PAGES = (
    *("/", "/alerts", "/teams", "/calibration", "/disputes"),
    *("/sessions", "/analytics", "/analytics?cohort=every"),
    *(f"/sessions/{name}" for name in TIMES),
)


@pytest.fixture(scope="module", params=["sqlite", "postgresql", "west"])
def old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    folder: Path = tmp_path_factory.mktemp("web")
    changes = {}
    if request.param != "sqlite":
        url = databases.postgresql(request.getfixturevalue("server"))
        changes["database_url"] = SecretStr(url)
        if request.param == "west":
            name = sa.make_url(url).database
            engine = sa.create_engine(url.replace("postgresql", "postgresql+psycopg"))
            with engine.begin() as connection:
                connection.execute(
                    sa.text(f"ALTER DATABASE {name} SET TimeZone = 'Pacific/Honolulu'")
                )
            engine.dispose()
    web = InProcessWeb(folder, changes=changes)
    try:
        web.start()
        for name, at in TIMES.items():
            turns = [turn(seq, session_id=name, occurred_at=at, team="north") for seq in range(4)]
            web.commit(*turns, end(session_id=name, occurred_at=at))
        yield web
    finally:
        web.stop()


@pytest.mark.parametrize("name", TIMES)
def test_the_api_returns_extreme_times(old: Web, name: str) -> None:
    with old.client() as sue:
        for order in ("risk", "index", "activity", "start", "id"):
            found = sue.get("/sessions", params={"order": order}).json()["items"]
            cards = {card["session_id"]: card for card in found}
            assert datetime.fromisoformat(cards[name]["started_at"]) == at(name)
        for path in (f"/sessions/{name}", f"/sessions/{name}/turns", f"/sessions/{name}/history"):
            answer = sue.get(path)
            assert answer.status_code == 200, answer.text
        alerts = sue.get("/alerts").json()["items"]
        assert {alert["session_id"] for alert in alerts} == set(TIMES)


@pytest.mark.parametrize("path", ["sessions", "turns"])
@pytest.mark.parametrize("chosen", ["csv", "parquet", "jsonl"])
def test_exports_contain_extreme_times(old: Web, chosen: str, path: str) -> None:
    with old.client() as sue:
        answer = sue.get(f"/exports/{path}", params={"format": chosen})
    assert answer.status_code == 200
    for row in read(chosen, answer.content):
        time = row["started_at" if path == "sessions" else "occurred_at"]
        time = datetime.fromisoformat(time) if isinstance(time, str) else time
        assert time == at(row["session_id"])


def test_convokit_exports_contain_extreme_times(old: Web) -> None:
    with old.client() as sue:
        answer = sue.get("/exports/convokit")
    assert answer.status_code == 200
    with zipfile.ZipFile(io.BytesIO(answer.content)) as corpus:
        [name] = [name for name in corpus.namelist() if name.endswith("utterances.jsonl")]
        assert len(corpus.read(name).splitlines()) == 4 * len(TIMES)


def test_pages_render_with_extreme_times(old: Web) -> None:
    with old.client() as sue:
        for page in PAGES:
            answer = sue.get(f"{old.url}{page}")
            assert answer.status_code == 200, (page, answer.text[:500])


def at(name: str) -> datetime:
    return datetime.fromisoformat(TIMES[name])
