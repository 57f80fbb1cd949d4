"""Intents of a file, from the log to rows, rules, the API, the page and the exports."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_app import bootstrap
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.restrictions import parse_restrictions
from stream_app.inference.bundles import bundle as bundles
from stream_app.store.database import tables
from stream_app.store.lifecycle import restricted
from tests import group_files
from tests.store.batches import received, turn
from tests.store.reading import rows
from tests.web.in_process import InProcessWeb
from tests.web.people.client import without_line_breaks

INTENTS = """version: 1
include: [service]
intents:
  - name: wants_refund
    title: wants a refund
    role: client
    examples:
      - I want my money back.
      - Please refund the second ticket.
      - When do I get my refund?
      - I would like a refund for this order.
    counter_examples: [Your refund has arrived.]
"""
RULES = """version: 1
rules:
  - name: refund
    summary: A refund was asked for {intent.wants_refund.turns} times.
    severity: info
    when: intent.wants_refund > 0.0
    for: 0s
"""
TEXTS = ("I want my money back for this ticket.", "I am really sorry for the inconvenience.")
POLICY: dict[str, list[str]] = {"all": ["client"]}


class Scored:
    """A session of two turns, scored with the intents, and the console on its database."""

    def __init__(self, folder: Path, **policy: list[str]) -> None:
        files = {"intents": folder / "intents.yaml", "rules": folder / "rules.yaml"}
        files["intents"].write_text(INTENTS, "utf-8")
        files["rules"].write_text(RULES, "utf-8")
        groups = group_files.written(folder, restricted_outputs=policy)
        changes: dict[str, object] = {**files, "groups": groups}
        self.web = InProcessWeb(folder, changes=changes)
        settings = self.web.settings.model_copy(update={"bundle": bundles.find("nano"), **files})
        scorer = bootstrap.scorer(settings)
        store = bootstrap.prepared_store(settings, scorer)
        log = [turn(seq, text=text, domain="customer-service") for seq, text in enumerate(TEXTS)]
        self.result: BatchResult = bootstrap.pipeline(settings, scorer).process(received(log), {})
        store.commit(self.result)
        store.close()
        self.web.start()

    def stored(self) -> dict[int, set[str]]:
        return {row["seq"]: set(row["intents"]) for row in rows(self.web.store, tables.turn_scores)}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Scored]:
    made = Scored(tmp_path)
    yield made
    made.web.stop()


def test_hits_are_stored_shown_exported_and_start_rules(session: Scored) -> None:
    assert session.stored() == {0: {"wants_refund"}, 1: {"express_apology"}}
    fired = [alert for alert in session.result.alerts if alert.state.value == "firing"]
    assert [alert.reason for alert in fired] == ["A refund was asked for 1 times."]
    headers = {"Authorization": f"Bearer {session.web.tokens['sue']}"}
    with session.web.anonymous_client(headers=headers) as sue:
        page = without_line_breaks(sue.get("/sessions/s").raise_for_status().text)
        turns = sue.get("/api/v1/sessions/s/turns").raise_for_status().json()["items"]
        draft = {"text": RULES.replace("wants_refund", "express_apology")}
        checked = sue.post("/api/v1/rules/check", json=draft).raise_for_status().json()
    with session.web.client("sue") as sue:
        exported = sue.get("/exports/turns?format=csv").raise_for_status().content
    assert '<span class="chip-head">intent</span><b>wants a refund</b>' in page
    assert '<span class="chip-head">intent</span><b>apologises</b>' in page
    assert turns[0]["scores"][0]["intents"].keys() == {"wants_refund"}
    assert checked["valid"]
    table = list(csv.DictReader(io.StringIO(exported.decode("utf-8-sig"))))
    assert float(table[0]["intent_wants_refund"]) >= 0.5
    assert (table[0]["intent_express_apology"], table[1]["intent_wants_refund"]) == ("", "")
    assert "express_apology" in table[1]["intents"]


def test_restricted_client_outputs_leave_the_counsellors_intents(tmp_path: Path) -> None:
    session = Scored(tmp_path, **POLICY)
    session.web.stop()
    assert session.stored() == {0: set(), 1: {"express_apology"}}
    assert session.result.alerts == []


def test_a_policy_removes_intents_that_were_stored_before(session: Scored) -> None:
    assert sum(restricted.remove(session.web.store, parse_restrictions(POLICY))) == 1
    assert session.stored() == {0: set(), 1: {"express_apology"}}
    assert {alert["reason"] for alert in rows(session.web.store, tables.alerts)} == {
        restricted.REASON
    }
