"""Text for an approved study: only for its accounts, until its end, audited and masked."""

import io
import json
import zipfile
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from stream_app.store.accounts import audit, studies
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import PersonError
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.accounts.studies import StudyRefused
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from tests.store import batches, judging
from tests.web.people.conftest import As, as_, filled

__all__ = ["as_", "filled"]
STUDY = "IRB-2026-017"
SOON = timedelta(days=30)


@pytest.fixture
def admitted(filled: Store) -> Store:
    """A study account for team north, in a study in progress."""
    judging.person(filled, "stu", PersonRole.STUDY, "north")
    studies.admit(filled, STUDY, "stu", datetime.now(UTC) + SOON)
    return filled


def export(as_: As, table: str = "turns", **params: Any) -> httpx.Response:
    return as_("stu").get(f"/api/v1/exports/{table}", params={"format": "jsonl", **params})


def test_a_study_gets_the_text_of_its_team_and_each_session_is_audited(
    admitted: Store, as_: As
) -> None:
    answer = export(as_, text=True, study=STUDY)
    assert answer.status_code == 200
    found = [json.loads(line) for line in answer.text.splitlines()]
    assert {row["session_id"] for row in found} == {"north-0", "north-1", "north-2"}
    assert all("That must have been hard" in row["text"] for row in found)
    assert {row["speaker"] for row in found} == {"client-1", "counsellor-1"}
    assert judging.NOOR not in answer.text
    assert admitted.privacy.pseudonym(judging.NOOR) not in answer.text
    entries = audit.find(admitted, person="stu").items
    reads = [e for e in entries if e.action == AuditAction.READ_TRANSCRIPT.value]
    assert {e.session_id for e in reads} == {"north-0", "north-1", "north-2"}
    assert {e.detail for e in reads} == {f"export of turns for study {STUDY}"}
    [exported] = [e for e in entries if e.action == AuditAction.EXPORT.value]
    assert exported.detail == f"turns as jsonl with text for study {STUDY}"


def test_a_study_gets_a_corpus_with_text_and_tables_without(admitted: Store, as_: As) -> None:
    raw = export(as_, "convokit", study=STUDY).content
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        lines = archive.read("rapport-corpus/utterances.jsonl").splitlines()
    assert all(json.loads(line)["text"] for line in lines)
    for table in ("sessions", "turns"):
        rows = [json.loads(line) for line in export(as_, table, study=STUDY).text.splitlines()]
        assert rows
        assert all("text" not in row for row in rows)


@pytest.mark.parametrize("table", ["sessions", "turns", "convokit"])
@pytest.mark.parametrize("named", [{}, {"study": "another"}])
def test_without_its_study_the_account_exports_nothing(
    admitted: Store, as_: As, table: str, named: dict[str, str]
) -> None:
    answer = export(as_, table, **named)
    assert answer.status_code == 403
    assert answer.json()["type"].endswith("study-refused")
    assert audit.find(admitted, person="stu").items == []


def test_an_ended_study_exports_nothing(admitted: Store, as_: As) -> None:
    assert export(as_, study=STUDY).status_code == 200
    assert studies.end(admitted, STUDY) == 1
    answer = export(as_, study=STUDY, text=True)
    assert answer.status_code == 403
    assert f"the study {STUDY} ended on" in answer.json()["detail"]


def test_a_study_whose_date_has_passed_exports_nothing(admitted: Store, as_: As) -> None:
    past = datetime.now(UTC) - timedelta(seconds=1)
    with admitted.transaction() as connection:
        connection.execute(sa.update(tables.studies).values(until=past))
    assert export(as_, study=STUDY, text=True).status_code == 403


def test_the_study_of_another_account_or_role_gives_nothing(admitted: Store, as_: As) -> None:
    judging.person(admitted, "other", PersonRole.STUDY, "north")
    answer = as_("other").get("/api/v1/exports/turns", params={"study": STUDY, "text": True})
    assert answer.status_code == 403
    answer = as_("ana").get("/api/v1/exports/turns", params={"study": STUDY, "text": True})
    assert answer.status_code == 403
    for path in ("/api/v1/sessions/north-0/turns", "/api/v1/exports/ratings", "/exports"):
        assert as_("stu").get(path).status_code == 403


def test_text_that_was_stored_unmasked_is_masked_for_a_study(admitted: Store, as_: As) -> None:
    """Masking text that is masked already changes nothing."""
    number = "Call me on 020 7946 0018 or write to anna.becker@example.org."
    batches.prepare(admitted, redact=False)
    admitted.commit(batches.process([batches.turn(0, session_id="raw", team="north", text=number)]))
    batches.prepare(admitted, redact=True)
    rows = [json.loads(line) for line in export(as_, text=True, study=STUDY).text.splitlines()]
    [raw] = [row["text"] for row in rows if row["session_id"] == "raw"]
    assert "7946" not in raw
    assert "anna.becker" not in raw
    assert raw.startswith("Call me on •")
    assert admitted.privacy.masked(raw) == raw
    supervisor = as_("sue").get("/api/v1/exports/turns", params={"format": "jsonl", "text": True})
    assert "7946" in supervisor.text, "it was stored as it is"


def test_only_accounts_of_the_role_can_be_admitted_and_only_until_a_date_to_come(
    filled: Store,
) -> None:
    later = datetime.now(UTC) + SOON
    with pytest.raises(PersonError, match="needs the role study"):
        studies.admit(filled, STUDY, "sue", later)
    with pytest.raises(PersonError, match="no account"):
        studies.admit(filled, STUDY, "nobody", later)
    judging.person(filled, "stu", PersonRole.STUDY)
    with pytest.raises(StudyRefused, match="has passed"):
        studies.admit(filled, STUDY, "stu", datetime.now(UTC))
    with pytest.raises(StudyRefused, match="no study"):
        studies.end(filled, STUDY)
    studies.admit(filled, STUDY, "stu", later)
    studies.admit(filled, STUDY, "stu", later + SOON)
    [found] = studies.every(filled)
    assert (found.study_id, found.person) == (STUDY, "stu")
    assert found.until == later + SOON
