"""The scoring bundle in the console: what is in force, promoting, rolling back, who did it."""

import json
from pathlib import Path

import pytest

from stream_app.adaptation import promotion
from stream_app.inference.bundles.bundle import MANIFEST, load
from stream_app.store.accounts.people import People
from stream_app.store.stream import shadow_scores
from stream_app.store.stream.repository import Store
from stream_app.work.passwords import hash_password
from tests.adaptation import platform
from tests.web.people.client import Client
from tests.web.people.conftest import As
from tests.web.people.test_pages import proper

PASSWORD = "long enough to pass"
PAGE = "/admin/bundles"


@pytest.fixture
def ada(as_: As, filled: Store) -> Client:
    """An administrator with a password."""
    People(filled).set_password("ada", hash_password(PASSWORD))
    return as_("ada")


@pytest.fixture
def pointer(ada: Client, filled: Store, tmp_path: Path) -> Path:
    """The file that RAPPORT_BUNDLE names; of the two bundles next to it the first is in force."""
    first, second = (
        platform.bundle_folder(tmp_path / "bundles" / name) for name in ("first", "second")
    )
    content = json.loads((second / MANIFEST).read_text("utf-8"))
    (second / MANIFEST).write_text(json.dumps({**content, "version": "2"}), "utf-8")
    (second / "MODEL_CARD.md").write_text("# Second <b>card</b>", "utf-8")
    file = tmp_path / "in-force.json"
    promotion.promote(filled, file, first, "the first")
    object.__setattr__(ada.app.state.services.settings, "bundle", file)
    return file


def test_a_folder_is_shown_with_its_card_and_cannot_be_changed_here(ada: Client) -> None:
    page = proper(ada.get(PAGE))
    assert load().manifest.bundle_id in page
    assert "It is **not a diagnosis" in page
    assert "No bundle has scored in the shadow" in page
    assert "RAPPORT_BUNDLE names a bundle" in page
    assert "Bring into force" not in page
    form = {"bundle": "0" * 64, "reason": "x", "password": PASSWORD}
    answer = ada.post(f"{PAGE}/promote", data=form)
    assert answer.status_code == 422
    assert "RAPPORT_BUNDLE is the folder" in answer.text


def test_a_bundle_is_promoted_and_rolled_back(ada: Client, pointer: Path) -> None:
    second = load(pointer.parent / "bundles" / "second")
    assert "fake-2-fp32" in proper(ada.get(PAGE))
    form = {"bundle": second.digest, "reason": "better since March"}
    answer = ada.post(f"{PAGE}/promote", data={**form, "password": "wrong"})
    assert answer.status_code == 422
    assert 'value="better since March"' in answer.text, "the form keeps what was typed"
    assert load(pointer).manifest.bundle_id == "fake-1-fp32"

    page = proper(ada.post(f"{PAGE}/promote", data={**form, "password": PASSWORD}))
    assert "fake-2-fp32 is in force when workers and consoles have been restarted" in page
    assert "No worker has used this bundle yet" in page
    assert "# Second &lt;b&gt;card&lt;/b&gt;" in page
    assert load(pointer).digest == second.digest
    assert "Roll back to fake-1-fp32" in page
    assert f"promote fake-2-fp32, digest {second.digest[:12]}: better since March" in page
    assert "<td>ada</td>" in page

    undo = {"reason": "raters disagree", "password": PASSWORD}
    page = proper(ada.post(f"{PAGE}/rollback", data=undo))
    assert load(pointer).manifest.bundle_id == "fake-1-fp32"
    assert "roll back fake-2-fp32 to fake-1-fp32: raters disagree" in page
    assert "Roll back to" not in page
    assert "promoted first" in ada.post(f"{PAGE}/rollback", data=undo).text


def test_only_bundles_of_known_folders_can_be_chosen(
    ada: Client, pointer: Path, tmp_path: Path
) -> None:
    elsewhere = platform.bundle_folder(tmp_path / "uploads" / "deep" / "third")
    content = json.loads((elsewhere / MANIFEST).read_text("utf-8"))
    (elsewhere / MANIFEST).write_text(json.dumps({**content, "version": "3"}), "utf-8")
    assert "fake-3-fp32" not in ada.get(PAGE).text
    form = {"bundle": load(elsewhere).digest, "reason": "x", "password": PASSWORD}
    answer = ada.post(f"{PAGE}/promote", data=form)
    assert answer.status_code == 422
    assert "its folder is gone" in answer.text
    assert load(pointer).manifest.bundle_id == "fake-1-fp32"


def test_a_bundle_in_the_shadow_and_a_broken_file_are_said(
    ada: Client, filled: Store, pointer: Path
) -> None:
    shadow_scores.register(filled, "fake-9-fp32", "d" * 64, {"heads": []})
    assert "fake-9-fp32: 0 turns scored" in proper(ada.get(PAGE))
    pointer.write_text("{", "utf-8")
    assert "names no bundle that can be read" in proper(ada.get(PAGE))
