"""``rapport bundle adapt --export``: judged turns as vectors without text for adapters."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from stream_app.adaptation import judged_vectors
from stream_app.adaptation.judged_vectors import VectorFileError
from stream_app.inference.bundles.bundle import SHIPPED, load
from stream_app.store.database import tables
from stream_app.store.lifecycle import erasure
from stream_app.store.stream.repository import Store
from tests.adaptation.platform import COUNSELLORS, HEAD, fill
from tests.commands.conftest import Rapport

SESSIONS = 10
RATED = SESSIONS * 6


@pytest.fixture
def filled(store: Store) -> Store:
    """Rated sessions whose scores are said to be those of the shipped small bundle."""
    fill(store, SESSIONS)
    name = load(SHIPPED / "nano").manifest.bundle_id
    with store.transaction() as connection:
        for table in (tables.turn_scores, tables.session_scores):
            connection.execute(sa.update(table).values(bundle=name))
    return store


def test_judged_turns_are_written_as_windows_of_vectors_without_text(
    filled: Store, tmp_path: Path, rapport: Rapport
) -> None:
    file = tmp_path / "judged.npz"
    done = rapport("bundle", "adapt", "--export", file, "--consent", "v1", "--bundle", "nano")
    assert done.returncode == 0, done.stderr
    assert f"{RATED} rated turns and 0 disputes by {COUNSELLORS} counsellors" in done.stdout
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.glob("tmp*")) == []
    found = judged_vectors.read(file)
    bundle = load(SHIPPED / "nano")
    assert (found.bundle, found.digest) == (bundle.manifest.bundle_id, bundle.digest)
    assert list(found.heads) == [HEAD]
    judged = found.heads[HEAD]
    assert sorted(judged.rows) == list(range(RATED))
    assert np.allclose(judged.target.sum(axis=1), 1.0)
    assert set(judged.group) == set(range(COUNSELLORS))
    assert found.windows["target"].shape == (RATED, 2, bundle.manifest.encoder.hidden_size)
    # the first turn of a session is the client's, so that every rated one has a neighbour
    assert found.windows["context_mask"].sum(axis=1).min() > 0
    assert found.gap > 0.01  # the scores are not this bundle's
    raw = file.read_bytes()
    for secret in (b"spoken for nobody", b"s-001", b"example.org", b"sue"):
        assert secret not in raw


def test_every_session_whose_text_was_read_is_in_the_audit_trail(
    filled: Store, tmp_path: Path, rapport: Rapport
) -> None:
    rapport(
        "bundle",
        "adapt",
        "--export",
        tmp_path / "judged.npz",
        "--consent",
        "v1",
        "--bundle",
        "nano",
    )
    query = sa.select(tables.audit).where(tables.audit.c.detail == "adapt --export")
    with filled.reading() as connection:
        assert len(connection.execute(query).all()) == SESSIONS


def test_turns_without_consent_text_or_a_complete_window_are_left_out(
    filled: Store, tmp_path: Path, rapport: Rapport
) -> None:
    file = tmp_path / "judged.npz"
    done = rapport("bundle", "adapt", "--export", file, "--consent", "v2", "--bundle", "nano")
    assert f"{RATED} judgements were left out: of sessions without a consent" in done.stderr
    file.unlink()
    erasure.erase(filled, ["s-000"], datetime.now(UTC))
    with filled.transaction() as connection:
        gone = (tables.turns.c.session_id == "s-001") & (tables.turns.c.seq == 0)
        connection.execute(sa.update(tables.turns).where(gone).values(text=None))
    done = rapport("bundle", "adapt", "--export", file, "--consent", "v1", "--bundle", "nano")
    # of s-001, the counsellor's turns 1 and 3 have turn 0 in their window
    assert "2 judgements were left out: of turns whose text" in done.stderr
    assert len(judged_vectors.read(file).heads[HEAD].rows) == RATED - 6 - 2


def test_one_of_out_and_export_is_needed_and_nothing_is_overwritten(
    filled: Store, tmp_path: Path, rapport: Rapport
) -> None:
    asked = ("bundle", "adapt", "--consent", "v1", "--bundle", "nano")
    assert rapport(*asked).returncode == 2
    file = tmp_path / "judged.npz"
    assert rapport(*asked, "--export", file, "--out", tmp_path / "new").returncode == 2
    file.write_text("mine", "utf-8")
    done = rapport(*asked, "--export", file)
    assert (done.returncode, "exists" in done.stderr, file.read_text("utf-8")) == (1, True, "mine")


def test_another_file_is_refused_in_words(tmp_path: Path) -> None:
    file = tmp_path / "other.npz"
    with pytest.raises(VectorFileError, match="FileNotFoundError"):
        judged_vectors.read(file)
    file.write_bytes(b"no archive")
    with pytest.raises(VectorFileError, match="is no file of rapport bundle adapt"):
        judged_vectors.read(file)
    np.savez(file, about=np.zeros(3, np.uint8))
    with pytest.raises(VectorFileError, match="is no file of rapport bundle adapt"):
        judged_vectors.read(file)
