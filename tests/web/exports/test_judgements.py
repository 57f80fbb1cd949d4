"""Exports of ratings, disputes, alerts and roll-ups: contents by role, and who is refused."""

import csv
import io
import json
from typing import Any

import pytest
import sqlalchemy as sa
from pyarrow import parquet

from stream_app.analytics.rollups import rollups
from stream_app.store.accounts import audit
from stream_app.store.accounts.people import People
from stream_app.store.alerts import alert_actions
from stream_app.store.alerts.alerts import ActionKind
from stream_app.store.database import tables
from stream_app.store.database.judgements import Reason
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store
from stream_app.store.work import disputes, ratings
from stream_app.store.work.disputes import Decision
from tests.store.reading import rows
from tests.web.people.conftest import As, as_, filled

__all__ = ["as_", "filled"]
Rows = list[dict[str, Any]]
NOTE = "=HYPERLINK(1) the score ignores my second sentence"


def download(as_: As, name: str, what: str, chosen: str = "jsonl", **params: Any) -> Rows:
    answer = as_(name).get(f"/api/v1/exports/{what}", params={"format": chosen, **params})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-disposition"].startswith("attachment; filename=")
    match chosen:
        case "csv":
            return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"), newline="")))
        case "parquet":
            return list(parquet.read_table(io.BytesIO(answer.content)).to_pylist())
        case _:
            return [json.loads(line) for line in answer.text.splitlines()]


def trail(store: Store, person: str) -> list[str | None]:
    found = audit.find(store, person=person, action=audit.AuditAction.EXPORT)
    return [entry.detail for entry in found.items]


@pytest.fixture
def rated(filled: Store) -> Store:
    for name, session, sample in (
        ("sue", "north-0", None),
        ("sam", "south-0", None),
        ("pat", "north-0", "a sample"),
    ):
        given = [ratings.Judgement(session, 1, "explorations", 2)]
        ratings.rate(filled, ALL_SESSIONS, name, given, sample)
    ratings.rate(filled, ALL_SESSIONS, "sue", [ratings.Judgement("north-0", None, "rating", 4)])
    return filled


@pytest.mark.parametrize("chosen", ["csv", "parquet", "jsonl"])
def test_ratings_are_those_of_the_own_scope_without_blind_ones(
    rated: Store, as_: As, chosen: str
) -> None:
    found = download(as_, "sue", "ratings", chosen)
    assert [(r["session_id"], r["head"], int(r["value"]), r["rater"]) for r in found] == [
        ("north-0", "explorations", 2, "sue"),
        ("north-0", "rating", 4, "sue"),
    ]
    assert [row["seq"] in (None, "") for row in found] == [False, True]
    assert {row["team"] for row in found} == {"north"}
    assert trail(rated, "sue") == [f"ratings as {chosen}"]


def test_analysts_get_blind_ratings_and_numbers_instead_of_names(rated: Store, as_: As) -> None:
    found = download(as_, "ana", "ratings")
    by_rater: dict[str, set[str]] = {}
    for row in found:
        by_rater.setdefault(row["rater"], set()).add(row["session_id"])
    assert len(found) == 4
    assert set(by_rater) == {"rater-1", "rater-2", "rater-3"}
    assert [row["sample_id"] for row in found if row["sample_id"]] == ["a sample"]
    assert not {"sue", "sam", "pat"} & {str(value) for row in found for value in row.values()}


def test_comments_are_exported_for_those_who_may_read_transcripts(rated: Store, as_: As) -> None:
    given = [ratings.Judgement("north-0", 1, "explorations", 1)]
    ratings.rate(rated, ALL_SESSIONS, "sue", given, comment="=2+5, asked too early")
    for name in ("sue", "noor"):
        found = {row["seq"]: row["comment"] for row in download(as_, name, "ratings")}
        assert found == {1: "=2+5, asked too early", None: None}
    for row in download(as_, "ana", "ratings"):
        assert "comment" not in row
        assert "too early" not in str(row)


def test_a_counsellor_gets_what_the_session_page_shows_them(rated: Store, as_: As) -> None:
    assert {row["rater"] for row in download(as_, "noor", "ratings")} == {"sue"}
    assert download(as_, "olu", "ratings", team="north") == []


@pytest.fixture
def contested(filled: Store) -> Store:
    noor, sue = People(filled).find("noor"), People(filled).find("sue")
    assert noor is not None
    assert sue is not None
    for seq in (1, 3):
        [value] = {
            row["explorations"]
            for row in rows(filled, tables.turn_scores)
            if (row["session_id"], row["seq"], row["stage"]) == ("north-0", seq, "final")
        }
        made = disputes.contest(filled, noor, "north-0", seq, "explorations", (value + 1) % 3, NOTE)
    disputes.decide(filled, sue, made.dispute_id, Decision.UPHELD, "-2 is right, call 555 0147 222")
    return filled


def test_disputes_have_their_answers_for_those_who_may_read_them(contested: Store, as_: As) -> None:
    found = download(as_, "sue", "disputes", "csv")
    assert [(row["seq"], row["decision"], row["decided_by"]) for row in found] == [
        ("1", "", ""),
        ("3", "upheld", "sue"),
    ]
    assert {row["note"] for row in found} == {f"'{NOTE}"}, "a formula is neutralised"
    assert found[1]["answer"].startswith("'-2 is right, call •")
    assert download(as_, "noor", "disputes")[1]["note"] == NOTE
    assert download(as_, "olu", "disputes") == []
    assert download(as_, "sam", "disputes") == []


def test_analysts_get_disputes_without_words_and_names(contested: Store, as_: As) -> None:
    found = download(as_, "ana", "disputes")
    assert [row["decision"] for row in found] == [None, "upheld"]
    assert not {"note", "answer", "person", "decided_by"} & found[0].keys()


@pytest.fixture
def answered(filled: Store) -> dict[str, str]:
    """Episodes of north and south with answers; by team, the episode."""
    found = {}
    for row in rows(filled, tables.alerts):
        team, _, number = row["session_id"].partition("-")
        if number == "0" and row["rule"] == "low-empathy-risk":
            found[team] = row["episode_id"]
    for name, team in (("sue", "north"), ("sam", "south")):
        for reason in (Reason.FALSE_ALARM, Reason.JUSTIFIED, Reason.NOT_NOW):
            kind = ActionKind.ACKNOWLEDGE
            alert_actions.record_action(
                filled, ALL_SESSIONS, found[team], kind, name, reason, f"+1 {reason.value}"
            )
    return found


@pytest.mark.parametrize("chosen", ["csv", "parquet", "jsonl"])
def test_alerts_have_their_answers(
    answered: dict[str, str], filled: Store, as_: As, chosen: str
) -> None:
    found = {row["episode_id"]: row for row in download(as_, "sue", "alerts", chosen)}
    assert answered["south"] not in found
    assert {row["team"] for row in found.values()} == {"north"}
    row = found[answered["north"]]
    answers = row["answers"]
    answers = answers if isinstance(answers, list) else json.loads(answers)
    assert [(each["reason"], each["person"], each["note"]) for each in answers] == [
        (reason, "sue", f"+1 {reason}") for reason in ("false-alarm", "justified", "not-now")
    ]
    assert row["judgement"] == "justified"
    firing = next(
        alert
        for alert in rows(filled, tables.alerts)
        if (alert["episode_id"], alert["state"]) == (answered["north"], "firing")
    )
    assert float(row["value"]) == firing["value"]
    assert row["reason"] == firing["reason"]
    assert row["fired_at"] not in ("", None)
    assert row["acknowledged_at"] not in ("", None)


def test_only_supervisors_get_notes_and_analysts_no_names(
    answered: dict[str, str], as_: As
) -> None:
    for name, person in (("noor", "sue"), ("ana", "withheld")):
        found = {row["episode_id"]: row for row in download(as_, name, "alerts")}
        answers = found[answered["north"]]["answers"]
        assert {(each["person"], each["note"]) for each in answers} == {(person, None)}


@pytest.fixture
def rolled(filled: Store) -> Store:
    rollups.rebuild(filled)
    return filled


@pytest.mark.parametrize("chosen", ["csv", "parquet", "jsonl"])
def test_a_roll_up_has_the_rows_of_its_view_with_small_cells_hidden(
    rolled: Store, as_: As, chosen: str
) -> None:
    with rolled.reading() as connection:
        query = sa.text("SELECT * FROM shown_week ORDER BY week, team, bundle")
        expected = connection.execute(query).mappings().all()
    found = download(as_, "ana", "rollups", chosen, table="week")
    assert expected
    assert [str(row["week"]) for row in found] == [str(row["week"]) for row in expected]
    assert [row["team"] for row in found] == [row["team"] for row in expected]
    assert {row["hidden"] for row in found} <= {True, "true"}, "all cells are small here"
    assert {row["sessions"] for row in found} <= {None, ""}
    assert trail(rolled, "ana") == [f"roll-up week as {chosen}"]


def test_every_roll_up_can_be_read_in_pages(
    rolled: Store, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stream_app.findings.exports import rollups as exported  # noqa: PLC0415

    for each in exported.RollUp:
        whole = download(as_, "pat", "rollups", table=each.value)
        monkeypatch.setattr(exported, "ROWS_PER_PAGE", 2)
        assert download(as_, "pat", "rollups", table=each.value) == whole
        monkeypatch.undo()


def test_a_supervisor_of_a_team_gets_its_roll_ups_only(rolled: Store, as_: As) -> None:
    assert {row["team"] for row in download(as_, "sue", "rollups", table="week")} == {"north"}
    answer = as_("sue").get("/api/v1/exports/rollups", params={"table": "day"})
    assert answer.status_code == 403
    assert "choose a roll-up by team" in answer.json()["detail"]
    assert trail(rolled, "sue") == ["roll-up week as jsonl"], "a refused one is not recorded"


def test_roll_ups_without_views_say_what_to_do(filled: Store, as_: As) -> None:
    with filled.transaction() as connection:
        connection.exec_driver_sql("DROP VIEW shown_week_measure")
    answer = as_("ana").get("/api/v1/exports/rollups")
    assert answer.status_code == 409
    assert "rapport db views" in answer.json()["detail"]
