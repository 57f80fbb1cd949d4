"""Outputs that a policy switches off are in no row, message, page or export."""

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from stream_app import bootstrap
from stream_app.contracts import scores
from stream_app.core.measures.heads import Dimension, Head
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.restrictions import parse_restrictions
from stream_app.inference.bundles import bundle as bundles
from stream_app.settings import Settings
from stream_app.store.database import tables
from stream_app.store.lifecycle import restricted
from tests import group_files
from tests.store.batches import end, received, turn
from tests.store.reading import rows
from tests.web.in_process import InProcessWeb

POLICY: dict[str, list[str]] = {"all": ["client", "perceived"]}
TEXTS = (
    "I cannot go on like this, I am desperate and nobody cares.",
    "That sounds very hard. What happened?",
)
TABLES = (tables.turn_scores, tables.session_scores, tables.alerts)
RULES = """
version: 1
rules:
  - name: unheard
    summary: "{waiting_distress} {client.satisfaction}"
    severity: info
    when: waiting_distress >= 0.0
    for: 1s
"""


@dataclass
class Scored:
    """A session scored by the shipped bundle, and the console on its database."""

    web: InProcessWeb
    settings: Settings
    result: BatchResult
    names: list[str]
    """Of the heads that are restricted, and of the probes."""

    def stored(self) -> str:
        """All values that are not null, with the names of their columns."""
        found = [row for table in TABLES for row in rows(self.web.store, table)]
        return repr(
            [{name: value for name, value in row.items() if value is not None} for row in found]
        )

    def sent(self) -> str:
        outputs = [*self.result.turn_scores, *self.result.session_scores, *self.result.alerts]
        return "".join(scores.encode(output).decode() for output in outputs)

    def read(self) -> str:
        """What the API, the pages and the exports show of the session."""
        headers = {"Authorization": f"Bearer {self.web.tokens['sue']}"}
        found = ""
        with self.web.anonymous_client(headers=headers) as sue:
            for path in ("", "/turns", "/history", "/feedback"):
                found += sue.get(f"/api/v1/sessions/s{path}").raise_for_status().text
            for path in ("/sessions/s", "/", "/alerts", "/api/v1/alerts"):
                found += sue.get(path).raise_for_status().text
        return found + self.exported()

    def exported(self) -> str:
        found = ""
        with self.web.client("sue") as sue:
            for name in ("sessions", "turns"):
                found += sue.get(f"/exports/{name}?format=csv").raise_for_status().text
            corpus = sue.get("/exports/convokit").raise_for_status().content
        with zipfile.ZipFile(io.BytesIO(corpus)) as archive:
            return found + "".join(archive.read(name).decode() for name in archive.namelist())


def scored(folder: Path, **policy: list[str]) -> Scored:
    (folder / "rules.yaml").write_text(RULES, "utf-8")
    web = InProcessWeb(
        folder, changes={"groups": group_files.written(folder, restricted_outputs=policy)}
    )
    settings = web.settings.model_copy(
        update={"bundle": bundles.find(Path("nano")), "rules": folder / "rules.yaml"}
    )
    scorer = bootstrap.scorer(settings)
    store = bootstrap.prepared_store(settings, scorer)
    log = [turn(seq, text=TEXTS[seq % 2], domain="peer-support") for seq in range(8)]
    result = bootstrap.pipeline(settings, scorer).process(received([*log, end()]), {})
    store.commit(result)
    store.close()
    web.start()
    names = [*_restricted(scorer.heads), "distress", "crisis_language", "chat_failed"]
    return Scored(web, settings, result, names)


def _restricted(heads: list[Head]) -> list[str]:
    return [head.name for head in heads if head.dimension is not Dimension.EXPRESSED]


@pytest.fixture
def unrestricted(tmp_path: Path) -> Iterator[Scored]:
    session = scored(tmp_path)
    yield session
    session.web.stop()


def test_without_a_policy_the_outputs_are_there(unrestricted: Scored) -> None:
    """Otherwise the tests below would show nothing."""
    stored, sent, read = unrestricted.stored(), unrestricted.sent(), unrestricted.read()
    for name in ("talk_type", "distress", "crisis_language", "engagement"):
        assert name in stored
        assert name in sent
        assert name in read
    assert {alert.rule for alert in unrestricted.result.alerts} == {"unheard"}


def test_a_policy_keeps_them_out_of_rows_messages_pages_and_exports(tmp_path: Path) -> None:
    session = scored(tmp_path, **POLICY)
    try:
        stored, sent, read = session.stored(), session.sent(), session.read()
    finally:
        session.web.stop()
    for name in session.names:
        assert name not in stored, name
        assert name not in sent, name
        assert f'"{name}"' not in read, name
        assert f"perceived_{name}" not in read, name
        assert name.replace("_", " ").capitalize() not in read, name
    assert session.result.alerts == []
    assert "emotional_reactions" in stored
    assert "Emotional reactions" in read


def test_a_policy_removes_what_was_stored_before(unrestricted: Scored) -> None:
    store = unrestricted.web.store
    before = rows(store, tables.turn_scores)
    assert sum(restricted.remove(store, parse_restrictions(POLICY))) == 1
    stored = unrestricted.stored()
    for name in unrestricted.names:
        assert name not in stored, name
    after = rows(store, tables.turn_scores)
    kept = ("expressed", "confidence", "low_empathy_risk", "late")
    assert [[row[name] for name in kept] for row in after] == [
        [row[name] for name in kept] for row in before
    ]
    assert {row["session_id"] for row in rows(store, tables.rollup_marks)} == {"s"}
    assert list(restricted.remove(store, parse_restrictions(POLICY))) == [], "once"
    table = list(csv.DictReader(io.StringIO(unrestricted.exported())))
    assert json.dumps(table)


def test_a_policy_of_another_team_removes_nothing(unrestricted: Scored) -> None:
    store = unrestricted.web.store
    with store.transaction() as connection:
        connection.execute(tables.sessions.update().values(team="boston"))
    before = unrestricted.stored()
    list(restricted.remove(store, parse_restrictions({"team:berlin": ["client"]})))
    assert unrestricted.stored() == before
