"""Only complete and valid bundles are loaded."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stream_app.core.rules.variables import OUTCOMES
from stream_app.errors import BundleError
from stream_app.inference.bundles import bundle as bundles


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(bundles.DEFAULT_BUNDLE, tmp_path / "bundle"))


def change(folder: Path, **changes: Any) -> None:
    path = folder / bundles.MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changes}), "utf-8")


def refusal(folder: Path) -> str:
    with pytest.raises(BundleError) as caught:
        bundles.load(folder)
    return str(caught.value)


def test_the_shipped_bundle_is_complete_and_small() -> None:
    bundle = bundles.load()
    assert bundle.manifest.profile == "int8"
    assert bundle.manifest.empathy is not None
    assert bundle.manifest.outcomes.keys() <= set(OUTCOMES)
    assert bundle.manifest.outcomes
    size = sum(path.stat().st_size for path in bundle.path.iterdir())
    assert size <= 60_000_000
    assert (bundle.path / "MODEL_CARD.md").is_file()


def test_the_shipped_bundle_has_the_heads_of_the_contract() -> None:
    heads = {head.name: head for head in bundles.load().manifest.heads}
    assert heads.keys() >= {
        "emotional_reactions",
        "interpretations",
        "explorations",
        "strategy",
        "question",
        "reflection",
        "input",
        "talk_type",
    }
    assert all(heads[name].rationale for name in list(heads)[:3])


def test_a_folder_without_a_manifest_is_rejected_with_instructions(tmp_path: Path) -> None:
    assert "RAPPORT_BUNDLE" in refusal(tmp_path)


def test_a_bundle_is_found_by_its_name_and_a_folder_by_its_path(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bundles.find("default") == bundles.DEFAULT_BUNDLE
    assert bundles.find(copy) == copy
    (copy.parent / "default").mkdir()
    monkeypatch.chdir(copy.parent)
    assert bundles.find("default") == bundles.DEFAULT_BUNDLE
    assert bundles.find("./default") != bundles.DEFAULT_BUNDLE


def test_an_unknown_name_is_rejected_with_the_shipped_names() -> None:
    message = refusal(bundles.find("nanno"))
    assert "no model bundle at nanno" in message
    assert ", ".join(bundles.shipped()) in message


def test_a_bundle_with_recomputed_hashes_is_rejected_by_the_pinned_digest(copy: Path) -> None:
    trusted = bundles.load(copy).digest
    assert bundles.load(copy, trusted).digest == trusted
    head = copy / "head.onnx"
    head.write_bytes(head.read_bytes() + b"\0")
    files = json.loads((copy / bundles.MANIFEST).read_text("utf-8"))["files"]
    change(copy, files={**files, "head.onnx": hashlib.sha256(head.read_bytes()).hexdigest()})
    forged = bundles.load(copy).digest
    with pytest.raises(BundleError) as caught:
        bundles.load(copy, trusted)
    message = str(caught.value)
    assert trusted in message
    assert forged in message
    assert f"`rapport bundle check {copy}`" in message


def test_the_digest_is_compared_before_the_manifest_is_decoded(copy: Path) -> None:
    (copy / bundles.MANIFEST).write_bytes(b"not JSON")
    with pytest.raises(BundleError, match="RAPPORT_BUNDLE_DIGEST accepts only"):
        bundles.load(copy, "0" * 64)


def test_a_damaged_file_is_rejected(copy: Path) -> None:
    path = copy / "head.onnx"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(bytes(raw))
    assert "damaged" in refusal(copy)


def test_a_missing_file_is_refused(copy: Path) -> None:
    (copy / "tokenizer.json").unlink()
    assert "missing" in refusal(copy)


def test_another_format_is_rejected(copy: Path) -> None:
    change(copy, format=99)
    assert "format 99" in refusal(copy)


def test_a_file_that_is_not_a_manifest_is_rejected(copy: Path) -> None:
    (copy / bundles.MANIFEST).write_text("[]", "utf-8")
    assert "not a bundle manifest" in refusal(copy)


def test_a_graph_without_a_hash_is_refused(copy: Path) -> None:
    change(copy, files={})
    assert "no SHA-256" in refusal(copy)


def test_a_file_outside_the_folder_is_refused(copy: Path) -> None:
    files = json.loads((copy / bundles.MANIFEST).read_text("utf-8"))["files"]
    change(copy, files={**files, "../outside": "0" * 64})
    assert "missing" in refusal(copy)


def test_additional_heads_are_read_from_the_manifest(copy: Path) -> None:
    heads = json.loads((copy / bundles.MANIFEST).read_text("utf-8"))["heads"]
    change(copy, heads=[*heads, {**heads[0], "name": "charm"}])
    assert bundles.load(copy).manifest.heads[-1].name == "charm"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda e: e["domains"]["peer-support"]["answer"]["weights"].update(wit=1.0), "wit"),
        (lambda e: e.update(default="elsewhere"), "default domain"),
        (lambda e: e.update(change=0.0), "probability of change"),
        (lambda e: e["domains"]["peer-support"].update(within=0.0), "spreads above 0"),
    ],
)
def test_an_empathy_index_that_would_crash_a_worker_is_rejected(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], words: str
) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(bundles.DEFAULT_BUNDLE, folder)
    content = json.loads((folder / "bundle.json").read_text("utf-8"))
    change(content["empathy"])
    (folder / "bundle.json").write_text(json.dumps(content), "utf-8")
    with pytest.raises(BundleError) as refused:
        bundles.load(folder)
    assert words in " ".join(str(refused.value).split())
