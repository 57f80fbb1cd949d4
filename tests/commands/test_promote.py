"""Promoting a bundle and rolling back: the file, the audit trail, and what is refused."""

import json
from pathlib import Path

import pytest

from stream_app.errors import BundleError
from stream_app.inference.bundles.bundle import MANIFEST, load
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from tests.adaptation import platform
from tests.commands.conftest import NewStore, Rapport
from tests.store.reading import rows


@pytest.fixture
def pointer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that RAPPORT_BUNDLE names; nothing was promoted yet."""
    file = tmp_path / "in-force.json"
    monkeypatch.setenv("RAPPORT_BUNDLE", str(file))
    return file


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two bundles."""
    first, second = (platform.bundle_folder(tmp_path / name) for name in ("first", "second"))
    content = json.loads((second / MANIFEST).read_text("utf-8"))
    (second / MANIFEST).write_text(json.dumps({**content, "version": "2"}), "utf-8")
    return first, second


def audited(store: Store) -> list[str]:
    return [row["detail"] for row in rows(store, tables.audit) if row["action"] == "change bundle"]


def test_promoting_and_rolling_back_change_the_bundle_in_force(
    new_store: NewStore, rapport: Rapport, pointer: Path, two: tuple[Path, Path]
) -> None:
    store = new_store(0)
    for folder, reason in zip(two, ("the first", "tried since March"), strict=True):
        done = rapport("bundle", "promote", folder, "--reason", reason)
        assert done.returncode == 0, done.stderr
        assert load(pointer).digest == load(folder).digest
    assert "fake-2-fp32" in rapport("bundle", "check").stdout
    done = rapport("bundle", "rollback", "--reason", "raters disagree")
    assert "fake-1-fp32 is in force" in done.stdout
    assert load(pointer).manifest.bundle_id == "fake-1-fp32"
    details = audited(store)
    assert [detail.partition(",")[0] for detail in details[:2]] == [
        "promote fake-1-fp32",
        "promote fake-2-fp32",
    ]
    assert details[2] == "roll back fake-2-fp32 to fake-1-fp32: raters disagree"


def test_there_must_be_a_bundle_to_go_back_to(
    new_store: NewStore, rapport: Rapport, pointer: Path, two: tuple[Path, Path]
) -> None:
    new_store(0)
    assert "no model bundle at" in rapport("bundle", "rollback", "--reason", "x").stderr
    rapport("bundle", "promote", two[0], "--reason", "x")
    assert "there is none to go back to" in rapport("bundle", "rollback", "--reason", "x").stderr
    assert "in force already" in rapport("bundle", "promote", two[0], "--reason", "x").stderr


def test_a_bundle_changed_since_its_promotion_is_refused(
    new_store: NewStore, rapport: Rapport, pointer: Path, two: tuple[Path, Path]
) -> None:
    store = new_store(0)
    for folder in two:
        rapport("bundle", "promote", folder, "--reason", "x")
    manifest = two[0] / MANIFEST
    manifest.write_text(manifest.read_text("utf-8") + " ", "utf-8")
    before = pointer.read_bytes()
    assert rapport("bundle", "rollback", "--reason", "x").returncode == 1
    assert (pointer.read_bytes(), len(audited(store))) == (before, 2)
    manifest = two[1] / MANIFEST
    manifest.write_text(manifest.read_text("utf-8") + " ", "utf-8")
    with pytest.raises(BundleError, match="digest"):
        load(pointer)


def test_an_invalid_bundle_is_not_promoted(
    new_store: NewStore, rapport: Rapport, pointer: Path, two: tuple[Path, Path]
) -> None:
    store = new_store(0)
    (two[0] / "head.onnx").write_bytes(b"other")
    assert "is damaged" in rapport("bundle", "promote", two[0], "--reason", "x").stderr
    assert (pointer.exists(), audited(store)) == (False, [])


def test_a_folder_is_not_overwritten_by_a_pointer(
    new_store: NewStore, rapport: Rapport, two: tuple[Path, Path]
) -> None:
    new_store(0)
    done = rapport("bundle", "promote", two[1], "--reason", "x", RAPPORT_BUNDLE=str(two[0]))
    assert "set it to a file that Rapport writes" in done.stderr


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"format": 2, "bundles": []}', '{"format": 1, "bundles": []}']
)
def test_other_files_are_no_bundle(tmp_path: Path, content: str) -> None:
    file = tmp_path / "file"
    file.write_text(content, "utf-8")
    with pytest.raises(BundleError, match="no model bundle at"):
        load(file)
