"""Archiving moves every fact once, keeps what analyses say, and is reached by erasure."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from stream_app.analytics.archive import archive, fact_reader
from stream_app.analytics.rollups import rollups
from stream_app.analytics.views import schema
from stream_app.core.session.consent import OnWithdrawal
from stream_app.store.database import tables
from stream_app.store.lifecycle import archived, erasure, holds
from stream_app.store.lifecycle.archived import ArchiveError
from stream_app.store.stream import withdrawal
from stream_app.store.stream.repository import Store
from tests.analytics import archiving
from tests.analytics.archiving import BEFORE, NOW, SESSIONS, facts, fill, move
from tests.fakes import questionnaire
from tests.store import batches
from tests.store.reading import rows

ROLLED = (
    tables.rollup_sessions,
    tables.rollup_counsellors,
    tables.rollup_cells,
    tables.rollup_means,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def in_files(folder: Path, fact: str) -> list[dict[str, object]]:
    partitioning = ds.partitioning(flavor="hive")
    found: list[dict[str, object]] = (
        ds.dataset(folder / fact, partitioning=partitioning).to_table().to_pylist()
    )
    return found


def test_finished_months_move_and_every_fact_stays_the_same(store: Store, folder: Path) -> None:
    fill(store)
    before = facts(store, None)
    moved = move(store, folder)
    assert [(month.month, month.sessions) for month in moved] == [
        (date(2026, 1, 1), 2),
        (date(2026, 2, 1), 4),
    ]
    assert sum(month.rows["fact_turn"] for month in moved) == 6 * 6
    assert facts(store, folder) == before
    assert before["fact_alert"], "the rules fire"
    assert {row["session_id"] for row in rows(store, tables.turn_scores)} == {
        "session 3",
        "session 7",
    }
    assert {row["month"] for row in in_files(folder, "fact_turn")} == {"2026-01", "2026-02"}


def test_a_second_run_finds_nothing_to_do(store: Store, folder: Path) -> None:
    fill(store)
    move(store, folder)
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*.parquet")}
    assert move(store, folder) == []
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("*.parquet")} == before


def test_sessions_that_end_later_join_the_month(store: Store, folder: Path) -> None:
    fill(store)
    move(store, folder)
    store.commit(batches.process(archiving.session(20, "2026-02-10")))
    archiving.purge_texts(store)
    before = facts(store, folder)
    assert [(month.month, month.sessions) for month in move(store, folder)] == [
        (date(2026, 2, 1), 1)
    ]
    assert facts(store, folder) == before
    assert len(in_files(folder, "fact_session")) == 7


def test_heads_of_a_new_bundle_join_the_month(store: Store, folder: Path) -> None:
    fill(store)
    move(store, folder)
    head = {"name": "warmth", "dimension": "expressed", "kind": "binary", "labels": ["no", "yes"]}
    with store.transaction() as connection:
        manifest = {"name": "new", "heads": [head]}
        connection.execute(
            sa.insert(tables.bundles).values(
                bundle="new", digest="", manifest=manifest, first_used_at=NOW
            )
        )
    store.commit(batches.process(archiving.session(20, "2026-02-10")))
    archiving.purge_texts(store)
    before = facts(store, folder)
    move(store, folder)
    assert facts(store, folder) == before
    february = archived.file_of(folder, "fact_turn", date(2026, 2, 1))
    assert "expressed_warmth" in pq.read_schema(february).names


def test_text_open_sessions_and_peoples_judgements_stay(store: Store, folder: Path) -> None:
    store.commit(batches.process(archiving.session(0, "2026-01-02")))
    store.commit(batches.process(archiving.session(1, "2026-01-02")[:-1]))
    fill_one = archiving.session(2, "2026-01-02")
    store.commit(batches.process(fill_one))
    with store.transaction() as connection:
        of_two = tables.turns.c.session_id.in_(["session 1", "session 2"])
        connection.execute(sa.update(tables.turns).where(of_two).values(text=None))
        rating = {"session_id": "session 2", "head": "explorations", "value": 1, "seq": 1}
        connection.execute(
            sa.insert(tables.ratings).values(rating_id="r", person="p", at=NOW, **rating)
        )
    assert move(store, folder) == []
    assert archived.count(store) == 0


def test_sessions_with_a_questionnaire_stay(store: Store, folder: Path) -> None:
    log = archiving.session(0, "2026-01-02")
    store.commit(batches.process([*log, questionnaire("session 0")]))
    with store.transaction() as connection:
        connection.execute(sa.update(tables.turns).values(text=None))
    assert move(store, folder) == []


def test_held_and_withdrawn_sessions_stay(store: Store, folder: Path) -> None:
    fill(store)
    for name in ("session 0", "session 1"):
        holds.add(store, name, "a case", "ada", NOW)
    withdraw(store, "session 4")
    assert [(month.month, month.sessions) for month in move(store, folder)] == [
        (date(2026, 2, 1), 3)
    ]


def test_consent_withdrawn_later_hides_the_archived_session(store: Store, folder: Path) -> None:
    fill(store)
    move(store, folder)
    store.commit(batches.process([batches.turn(0, session_id="session 1")]))
    withdraw(store, "session 1")
    for found in facts(store, folder).values():
        assert "session 1" not in {row["session_id"] for row in found}
    list(rollups.update(store))
    assert "session 1" not in {row["session_id"] for row in rows(store, tables.rollup_sessions)}
    rolled = [rows(store, table) for table in ROLLED]
    rollups.rebuild(store)
    assert [rows(store, table) for table in ROLLED] == rolled


def test_a_month_with_a_held_session_does_not_expire(store: Store, folder: Path) -> None:
    fill(store)
    move(store, folder)
    holds.add(store, "session 0", "a case", "ada", NOW)
    assert list(archived.expire(store, folder, NOW + timedelta(days=9999))) == [4]
    with pytest.raises(holds.SessionHeld):
        erasure.erase(store, ["session 0"], NOW)


def withdraw(store: Store, session_id: str) -> None:
    table = tables.sessions
    with store.transaction() as connection:
        this = sa.update(table).where(table.c.session_id == session_id)
        connection.execute(this.values(withdrawn=True))
    withdrawal.apply_setting(store, OnWithdrawal.HIDE)


def test_files_hold_pseudonyms_and_no_text(store: Store, folder: Path) -> None:
    fill(store)
    move(store, folder)
    for fact in archived.FACTS:
        text = repr(in_files(folder, fact))
        assert "hard" not in text
        assert "client " not in text
        assert "counsellor " not in text
    speakers = {row["speaker"] for row in in_files(folder, "fact_turn")}
    assert store.privacy.pseudonym("client 1") in speakers
    assert (folder.stat().st_mode & 0o077) == 0


def test_roll_ups_and_dimensions_are_the_same_after_archiving(store: Store, folder: Path) -> None:
    fill(store)
    schema.create_views(store)
    list(rollups.update(store))
    dimensions = ("dim_counsellor", "dim_team")

    def state() -> list[object]:
        with store.reading() as connection:
            shown = [
                sorted(map(repr, connection.exec_driver_sql(f"SELECT * FROM {name}")))
                for name in dimensions
            ]
        return [*(rows(store, table) for table in ROLLED), *shown]

    before = state()
    move(store, folder)
    assert state() == before
    rollups.rebuild(store)
    assert state() == before


def test_what_comes_later_for_an_archived_session_counts_nowhere_twice(
    store: Store, folder: Path
) -> None:
    fill(store)
    before = facts(store, None)
    move(store, folder)
    rolled = [rows(store, table) for table in ROLLED]
    store.commit(batches.process(archiving.session(1, "2026-04-03")))
    archiving.purge_texts(store)
    assert move(store, folder, date(2026, 5, 1)) == [
        archive.Moved(
            date(2026, 3, 1),
            2,
            {"fact_session": 2, "fact_turn": 12, "fact_alert": 2, "fact_outcome": 2},
        )
    ]
    after = facts(store, folder)
    for fact in ("fact_session", "fact_turn", "fact_alert"):
        assert after[fact] == before[fact], fact
    list(rollups.update(store))
    assert [rows(store, table) for table in ROLLED] == rolled


def test_erasure_reaches_the_files(store: Store, folder: Path) -> None:
    fill(store)
    move(store, folder)
    erasure.erase(store, ["session 1", "session 3"], NOW)
    swept = archive.sweep(store, folder)
    assert swept.files == len(archived.FACTS)
    assert swept.rows >= 1 + 6 + 1
    for fact in archived.FACTS:
        text = repr(in_files(folder, fact))
        assert "session 1'" not in text
        assert store.privacy.pseudonym("client 1") not in text
    assert len(facts(store, folder)["fact_session"]) == SESSIONS - 2
    assert archive.sweep(store, folder) == archive.Swept()


def test_the_last_session_of_a_month_takes_its_files_along(store: Store, folder: Path) -> None:
    fill(store)
    move(store, folder)
    erasure.erase(store, ["session 0", "session 4"], NOW)
    archive.sweep(store, folder)
    assert {path.name for path in folder.glob("*/month=*")} == {"month=2026-02"}
    assert len(facts(store, folder)["fact_session"]) == SESSIONS - 2


def test_expired_months_are_deleted(store: Store, folder: Path) -> None:
    fill(store)
    move(store, folder)
    stored = datetime(2025, 1, 1, tzinfo=UTC)
    table = tables.archived_sessions
    with store.transaction() as connection:
        january = sa.update(table).where(table.c.month == date(2026, 1, 1))
        connection.execute(january.values(stored_at=stored))
    assert list(archived.expire(store, folder, stored)) == []
    assert list(archived.expire(store, folder, stored + timedelta(days=1))) == [2]
    assert {path.name for path in folder.glob("*/month=*")} == {"month=2026-02"}
    assert len(facts(store, folder)["fact_session"]) == SESSIONS - 2
    assert not {"session 0", "session 4"} & {
        row["session_id"] for row in rows(store, tables.session_speakers)
    }


def test_another_databases_archive_is_refused(store: Store, folder: Path) -> None:
    fill(store)
    move(store, folder)
    (folder / archived.OWNER_FILE).write_text("somebody else\n")
    for attempt in (
        lambda: move(store, folder),
        lambda: archive.sweep(store, folder),
        lambda: facts(store, folder),
    ):
        with pytest.raises(ArchiveError, match="another database"):
            attempt()


def test_a_missing_archive_is_an_error_and_not_an_empty_month(store: Store, folder: Path) -> None:
    fill(store)
    move(store, folder)
    with pytest.raises(ArchiveError, match="RAPPORT_ARCHIVE"):
        facts(store, None)
    archived.file_of(folder, "fact_turn", date(2026, 1, 1)).unlink()
    with pytest.raises(ArchiveError, match="lacks 1 file"):
        facts(store, folder)


def test_a_file_that_lacks_rows_stops_the_move(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    before = facts(store, None)
    counted = archive.arrow_rows.count
    monkeypatch.setattr(archive.arrow_rows, "count", lambda *given: counted(*given) + 1)
    with pytest.raises(ArchiveError, match="nothing was deleted"):
        move(store, folder)
    assert facts(store, folder) == before
    assert archived.count(store) == 0


def test_one_query_reads_both_sides(store: Store, folder: Path) -> None:
    fill(store)
    move(store, folder, BEFORE)
    with fact_reader.opened(store, folder) as reader:
        reader.load("fact_turn", names=["session_id", "date", "explorations_expected"])
        found = reader.query(
            "SELECT date_trunc('month', date) AS month, count(*) AS turns FROM fact_turn "
            "GROUP BY month ORDER BY month"
        )
    assert list(found["turns"]) == [12, 24, 12]
