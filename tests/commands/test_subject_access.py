"""`rapport export`: everything about one person, nothing about others."""

import json
import zipfile
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner, Result

from stream_app.cli import app
from stream_app.core.rules.scorecards import parse
from stream_app.errors import RapportError
from stream_app.settings import DEFAULT_SCORECARDS
from stream_app.store.accounts import audit
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.alerts import alert_actions
from stream_app.store.alerts.alerts import ActionKind
from stream_app.store.database import tables
from stream_app.store.lifecycle import subject_access
from stream_app.store.lifecycle.subject_access import DECISIONS, Included, LeftOut
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store
from stream_app.store.work import coaching_goals, disputes, ratings, reviews
from stream_app.store.work.ratings import Judgement
from stream_app.store.work.reviews import NewReview
from tests.analytics import archiving
from tests.commands.conftest import NewStore
from tests.store import batches, judging
from tests.store.batches import consent, process
from tests.store.reading import SEALED, rows

CLIENT = "client of north-0"
REFERENCES = {"session_id", "speaker", "counsellor", "person", "alert_id", "decided_by"}
Archive = dict[str, list[dict[str, Any]]]


@pytest.fixture
def store(new_store: NewStore) -> Store:
    return new_store(2)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["export", *arguments])


def exported(speaker: str, file: Path) -> tuple[Archive, str]:
    """The archive's tables and its README."""
    result = run("--speaker", speaker, "-o", str(file))
    assert result.exit_code == 0, result.exception
    with zipfile.ZipFile(file) as archive:
        parts = {
            name.removeprefix("data/").removesuffix(".json"): json.loads(archive.read(name))
            for name in archive.namelist()
            if name.startswith("data/")
        }
        return parts, archive.read("README.md").decode()


def test_every_table_has_a_decision() -> None:
    assert DECISIONS.keys() == tables.metadata.tables.keys(), (
        "decide in stream_app/store/lifecycle/subject_access.py what of a new table is a person's"
    )
    left_out = {
        name
        for name, decision in DECISIONS.items()
        if isinstance(decision, LeftOut)
        and REFERENCES.intersection(tables.metadata.tables[name].c.keys())
    }
    assert left_out == {
        "holds",
        "presence",
        "session_states",
        "window_turns",
        "session_keys",
        "session_numbers",
        "rollup_marks",
    }


def test_every_encrypted_column_of_an_included_table_is_decrypted() -> None:
    for column, place in SEALED:
        decision = DECISIONS[column.table.name]
        if isinstance(decision, Included):
            assert decision.sealed[column.name] == tuple(place), column


def test_a_client_gets_the_whole_conversation_and_no_other_person(
    store: Store, tmp_path: Path
) -> None:
    archive, readme = exported(CLIENT, tmp_path / "client.zip")
    assert {row["session_id"] for row in archive["sessions"]} == {"north-0"}
    turns = archive["turns"]
    assert len(turns) == judging.TURNS
    assert all("That must have been hard" in turn["text"] for turn in turns)
    own = store.privacy.pseudonym(CLIENT)
    assert [turn["speaker"] for turn in turns[:2]] == [own, "another person"]
    assert {row["seq"] % 2 for row in archive["turn_scores"]} == {0}
    assert [row["status"] for row in archive["consents"]] == ["given"]
    assert archive["alerts"]
    assert archive["people"] == []
    everything = json.dumps(archive) + readme
    for other in (judging.NOOR, "client of north-1"):
        assert store.privacy.pseudonym(other) not in everything
    assert "north-1" not in everything
    assert f"| `data/turns.json` | {judging.TURNS} |" in readme
    assert "`holds`: legal holds" in readme


def test_a_counsellor_gets_no_words_of_clients(store: Store, tmp_path: Path) -> None:
    noor = judging.counsellor(store)
    sue = judging.supervisor(store)
    disputes.contest(store, noor, "north-0", 1, "explorations", None, "I asked.")
    given = [Judgement("north-0", 1, "explorations", 1), Judgement("north-0", None, "rating", 4)]
    ratings.rate(store, sue.scope, sue.name, given)
    archive, _ = exported(judging.NOOR, tmp_path / "noor.zip")
    assert {row["session_id"] for row in archive["sessions"]} == {"north-0", "north-1"}
    for turn in archive["turns"]:
        own = turn["speaker"] == store.privacy.pseudonym(judging.NOOR)
        assert own == (turn["seq"] % 2 == 1)
        assert (turn["text"] is not None) == own
    assert [dispute["note"] for dispute in archive["disputes"]] == ["I asked."]
    assert [dispute["person"] for dispute in archive["disputes"]] == ["noor"]
    assert {rating["person"] for rating in archive["ratings"]} == {"staff"}
    [account] = archive["people"]
    assert account["name"] == "noor"
    assert "password_hash" not in account
    assert "sue" not in json.dumps(archive)


def test_notes_of_staff_are_decrypted_and_their_names_left_out(
    store: Store, tmp_path: Path
) -> None:
    alert = next(row for row in rows(store, tables.alerts) if row["session_id"] == "north-0")
    note = "The client was called back."
    alert_actions.record_action(
        store, ALL_SESSIONS, alert["episode_id"], ActionKind.NOTE, "sue", note=note
    )
    archive, _ = exported(CLIENT, tmp_path / "client.zip")
    [action] = archive["alert_actions"]
    assert (action["note"], action["person"]) == (note, "staff")


def test_an_archive_has_no_names_of_staff_in_any_column(store: Store, tmp_path: Path) -> None:
    for name in ("Nora", "O'Brien.K"):
        judging.supervisor(store, name)
    alert = next(row for row in rows(store, tables.alerts) if row["session_id"] == "north-0")
    alert_actions.record_action(
        store,
        ALL_SESSIONS,
        alert["episode_id"],
        ActionKind.NOTE,
        "Nora",
        note="nora told O'Brien.K; the norand list is hers",
    )
    audit.record(store, "Nora", audit.AuditAction.ASSIGN, "north-0", "to O'Brien.K")
    step = {"alert_id": alert["alert_id"], "step": 0, "session_id": "north-0", "attempts": 0}
    now = datetime(2026, 1, 5, tzinfo=UTC)
    with store.transaction() as connection:
        people_on_call = [{"recipient": "Dr. Unknown", "target": "phone of Nora"}]
        values = [{**step, "due_at": now, "state": "sent", **each} for each in people_on_call]
        connection.execute(sa.insert(tables.escalations), values)
    archive, _ = exported(CLIENT, tmp_path / "client.zip")
    everything = json.dumps(archive)
    assert "norand list" in everything, "other words stay"
    for name in ("Nora", "nora ", "O'Brien", "Dr. Unknown"):
        assert name not in everything
    assert archive["escalations"][0]["recipient"] == "staff"


def test_comments_of_raters_are_exported_for_those_they_are_about(
    store: Store, tmp_path: Path
) -> None:
    judging.counsellor(store)
    comment = "The second question came too early."
    given = [Judgement("north-0", 1, "explorations", 2)]
    ratings.rate(store, ALL_SESSIONS, "sue", given, comment=comment)
    archive, _ = exported(judging.NOOR, tmp_path / "counsellor.zip")
    [row] = archive["rating_comments"]
    assert (row["comment"], row["seq"], row["person"]) == (comment, 1, "staff")
    others, _ = exported(CLIENT, tmp_path / "client.zip")
    assert "too early" not in json.dumps(others), "it is about the counsellor's turn"


def test_reviews_and_goals_are_exported_for_those_they_are_about(
    store: Store, tmp_path: Path
) -> None:
    judging.counsellor(store)
    sue = judging.supervisor(store)
    card = parse(DEFAULT_SCORECARDS.read_bytes(), "scorecards.yaml")["handling"]
    due = datetime(2100, 1, 2, tzinfo=UTC)
    [made] = reviews.assign(store, [NewReview("north-0", "sue", "sue", card, due)])
    review = reviews.one(store, ALL_SESSIONS, made)
    reviews.comment(store, review, 1, "Warm, but in haste.")
    reviews.save_answers(store, review, {"concern": 2}, {"concern": 1})
    noor = store.privacy.pseudonym(judging.NOOR)
    days = date(2026, 1, 5), date(2026, 3, 30)
    coaching_goals.add(store, sue, noor, "explorations", "Ask, then wait.", *days)
    archive, _ = exported(judging.NOOR, tmp_path / "counsellor.zip")
    assert [(row["session_id"], row["reviewer"]) for row in archive["reviews"]] == [
        ("north-0", "staff")
    ]
    [answer] = archive["review_answers"]
    assert (answer["value"], answer["auto_value"]) == (2, 1)
    assert [row["comment"] for row in archive["review_comments"]] == ["Warm, but in haste."]
    assert [(row["goal"], row["person"]) for row in archive["coaching_goals"]] == [
        ("Ask, then wait.", "staff")
    ]
    others, _ = exported(CLIENT, tmp_path / "client.zip")
    assert len(others["reviews"]) == 1
    assert (others["review_comments"], others["coaching_goals"]) == ([], [])


def test_a_hidden_session_is_exported(store: Store, tmp_path: Path) -> None:
    states = store.load_states(["north-0"], "fake-1-fp32")
    store.commit(process([consent("withdrawn", session_id="north-0", speaker_id=CLIENT)], states))
    archive, _ = exported(CLIENT, tmp_path / "client.zip")
    assert len(archive["turns"]) == judging.TURNS
    assert {row["status"] for row in archive["consents"]} == {"given", "withdrawn"}


def test_the_export_is_audited_for_each_session_and_readable_only_by_its_owner(
    store: Store, tmp_path: Path
) -> None:
    exported(judging.NOOR, tmp_path / "noor.zip")
    acts = [(e.person, e.action, e.session_id) for e in reversed(audit.latest(store))]
    assert acts == [(audit.COMMAND_LINE, "subject access", f"north-{n}") for n in range(2)]
    assert (tmp_path / "noor.zip").stat().st_mode & 0o777 == 0o600
    again = run("--speaker", judging.NOOR, "-o", str(tmp_path / "noor.zip"))
    assert isinstance(again.exception, RapportError)
    assert "cannot be created" in str(again.exception)


def test_an_unknown_speaker_is_an_error_without_the_name(store: Store, tmp_path: Path) -> None:
    failed = run("--speaker", "joan@example.org", "-o", str(tmp_path / "joan.zip"))
    assert isinstance(failed.exception, RapportError)
    assert "check the speaker_id" in str(failed.exception)
    assert "joan" not in str(failed.exception)
    assert not (tmp_path / "joan.zip").exists()


def test_an_account_without_sessions_has_an_archive(store: Store, tmp_path: Path) -> None:
    pseudonym = store.privacy.pseudonym("new@example.org")
    subject = judging.person(store, "new", PersonRole.SUPERVISOR)
    with store.transaction() as connection:
        people = tables.people
        connection.execute(
            people.update().where(people.c.name == subject.name).values(speaker=pseudonym)
        )
    found = subject_access.find_subject(store, "new@example.org")
    assert found is not None
    assert found.accounts == ["new"]
    archive, _ = exported("new@example.org", tmp_path / "new.zip")
    assert [row["name"] for row in archive["people"]] == ["new"]


def test_archived_sessions_are_read_from_the_archive(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archiving.fill(store)
    archiving.move(store, tmp_path / "archive")
    refused = run("--speaker", "client 0", "-o", str(tmp_path / "one.zip"))
    assert "set RAPPORT_ARCHIVE" in str(refused.exception)
    assert not (tmp_path / "one.zip").exists()
    monkeypatch.setenv("RAPPORT_ARCHIVE", str(tmp_path / "archive"))
    archive, readme = exported("client 0", tmp_path / "one.zip")
    assert [row["session_id"] for row in archive["archived_sessions"]] == ["session 0"]
    assert [row["session_id"] for row in archive["archive_fact_session"]] == ["session 0"]
    own = store.privacy.pseudonym("client 0")
    assert [row["speaker"] for row in archive["archive_fact_turn"]] == [own] * 3
    assert "`data/archive_fact_turn.json` | 3 |" in readme
    assert store.privacy.pseudonym("counsellor 0") not in json.dumps(archive)


def test_a_whisper_is_given_to_who_whispered_alone(store: Store, tmp_path: Path) -> None:
    said = [
        batches.turn(0, session_id="w", speaker_id="cleo"),
        batches.turn(
            1, session_id="w", speaker_id="sam", role="supervisor", text="Ask about her sister."
        ),
        batches.turn(2, session_id="w", speaker_id="bot", role="system", text="Rate this chat."),
    ]
    store.commit(process(said))
    archive, _ = exported("cleo", tmp_path / "cleo.zip")
    texts = [row["text"] for row in archive["turns"]]
    assert [text is None for text in texts] == [False, True, False]
    archive, _ = exported("sam", tmp_path / "sam.zip")
    assert [row["text"] for row in archive["turns"]] == [None, "Ask about her sister.", None]
