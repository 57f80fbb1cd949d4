"""Rejected bundle folders, on a tiny bundle without a model."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stream_app.errors import BundleError
from stream_app.inference.bundles.bundle import ADAPTED_FORMAT, FORMAT, MANIFEST, load
from tests.fakes import FakeScorer

FILES = {"encoder.onnx": b"encoder", "head.onnx": b"head", "tokenizer.json": b"{}"}
HEAD = {
    "name": "emotional_reactions",
    "dimension": "expressed",
    "kind": "level",
    "roles": ["counsellor"],
    "labels": ["0", "1", "2"],
}


def sha(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def manifest() -> dict[str, Any]:
    return {
        "format": FORMAT,
        "name": "tiny",
        "version": "1",
        "profile": "fp32",
        "encoder": {
            "file": "encoder.onnx",
            "hidden_size": 4,
            "max_tokens": 8,
            "batch_independent": True,
        },
        "head": {"file": "head.onnx", "slots": 6},
        "tokenizer": {"file": "tokenizer.json"},
        "window": {"before": 3, "after": 3},
        "heads": [HEAD],
        "files": {name: sha(raw) for name, raw in FILES.items()},
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A complete bundle, next to an unrelated file."""
    path = tmp_path / "tiny"
    path.mkdir()
    for name, raw in FILES.items():
        (path / name).write_bytes(raw)
    (path / MANIFEST).write_text(json.dumps(manifest()), "utf-8")
    (tmp_path / "outside").write_bytes(b"outside")
    return path


def refusal(folder: Path) -> str:
    with pytest.raises(BundleError) as caught:
        load(folder)
    return str(caught.value)


def test_a_complete_bundle_is_loaded_with_its_id_and_digest(folder: Path) -> None:
    bundle = load(folder)
    assert bundle.manifest.bundle_id == "tiny-1-fp32"
    assert bundle.digest == sha((folder / MANIFEST).read_bytes())
    assert bundle.file("head.onnx").read_bytes() == b"head"


def test_a_missing_folder_is_rejected(tmp_path: Path) -> None:
    assert "no model bundle at" in refusal(tmp_path / "nowhere")


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    assert "no model bundle at" in refusal(tmp_path / "file")


@pytest.mark.parametrize(
    "name", ["../outside", "..", ".", "", "./head.onnx", "/etc/hostname", "sub/x"]
)
def test_a_file_that_is_not_directly_in_the_folder_is_refused(folder: Path, name: str) -> None:
    """Even if it exists and has the stated hash."""
    (folder / "sub").mkdir()
    (folder / "sub" / "x").write_bytes(b"outside")
    body = manifest()
    body["files"][name] = sha(b"outside")
    (folder / MANIFEST).write_text(json.dumps(body), "utf-8")
    assert "missing" in refusal(folder)


@pytest.mark.parametrize("part", ["encoder", "head", "tokenizer"])
def test_a_part_outside_the_folder_is_refused(folder: Path, part: str) -> None:
    body = manifest()
    body[part]["file"] = "../outside"
    (folder / MANIFEST).write_text(json.dumps(body), "utf-8")
    assert "no SHA-256 for ../outside" in refusal(folder)


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_checked(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"something else")
    assert f"{name} is damaged" in refusal(folder)
    (folder / name).unlink()
    assert f"{name} is missing" in refusal(folder)


def drop_heads(body: dict[str, Any]) -> None:
    del body["heads"]


def wrong_kind(body: dict[str, Any]) -> None:
    body["heads"] = [{**HEAD, "kind": "ordinal"}]


def wrong_role(body: dict[str, Any]) -> None:
    body["heads"] = [{**HEAD, "roles": ["wizard"]}]


def wrong_window(body: dict[str, Any]) -> None:
    body["window"] = {"before": "three", "after": 3}


def unknown_outcome_field(body: dict[str, Any]) -> None:
    model = {"intercept": 0.0, "weights": {}, "domain": "peer-support"}
    body["outcomes"] = {"chat_failed": {**model, "horoscope": 1}}


def unknown_empathy_field(body: dict[str, Any]) -> None:
    body["empathy"] = {**msgspec.to_builtins(FakeScorer.empathy), "horoscope": 1}


def reference_without_quantiles(body: dict[str, Any]) -> None:
    body["empathy"] = msgspec.to_builtins(FakeScorer.empathy)
    del body["empathy"]["domains"]["peer-support"]["quantiles"]


@pytest.mark.parametrize(
    "damage",
    [
        drop_heads,
        wrong_kind,
        wrong_role,
        wrong_window,
        unknown_outcome_field,
        unknown_empathy_field,
        reference_without_quantiles,
    ],
)
def test_a_manifest_with_another_structure_is_rejected(
    folder: Path, damage: Callable[[dict[str, Any]], None]
) -> None:
    body = manifest()
    damage(body)
    (folder / MANIFEST).write_text(json.dumps(body), "utf-8")
    assert "is not a bundle manifest" in refusal(folder)


def test_the_references_and_outcome_models_are_read(folder: Path) -> None:
    body = manifest()
    body["empathy"] = msgspec.to_builtins(FakeScorer.empathy)
    body["outcomes"] = msgspec.to_builtins(FakeScorer.outcomes)
    (folder / MANIFEST).write_text(json.dumps(body), "utf-8")
    found = load(folder).manifest
    assert (found.empathy, found.outcomes) == (FakeScorer.empathy, FakeScorer.outcomes)


def refused_format(folder: Path, number: int) -> bool:
    return refusal(folder) == (
        f"{folder} has bundle format {number}; this release reads {FORMAT} and {ADAPTED_FORMAT}. "
        "Export the bundle again with this release."
    )


def test_a_bundle_of_an_older_format_is_rejected_with_instructions(folder: Path) -> None:
    """Also if its other fields have a different structure."""
    body = manifest()
    body["format"], body["risk"] = FORMAT - 1, {"intercept": 0.0, "weights": {}}
    (folder / MANIFEST).write_text(json.dumps(body), "utf-8")
    assert refused_format(folder, FORMAT - 1)
    del body["window"], body["heads"]
    (folder / MANIFEST).write_text(json.dumps(body), "utf-8")
    assert refused_format(folder, FORMAT - 1)


def test_a_bundle_without_the_empathy_index_is_rejected_with_instructions(folder: Path) -> None:
    """Its risk has a different meaning, so its alerts would be wrong."""
    body = {**manifest(), "format": 1, "risk": {"intercept": 0.0, "weights": {}}}
    (folder / MANIFEST).write_text(json.dumps(body), "utf-8")
    assert refused_format(folder, 1)


def test_a_truncated_manifest_is_rejected(folder: Path) -> None:
    raw = (folder / MANIFEST).read_bytes()
    (folder / MANIFEST).write_bytes(raw[: len(raw) // 2])
    assert "is not a bundle manifest" in refusal(folder)


def with_head(folder: Path, **parts: Any) -> Path:
    body = manifest()
    charm = {**HEAD, "name": "charm", "kind": "binary", "labels": ["no", "yes"], **parts}
    body["heads"].append(charm)
    (folder / MANIFEST).write_text(json.dumps(body), "utf-8")
    return folder


@pytest.mark.parametrize("dimension", ["expressed", "perceived", "client"])
def test_a_heads_display_words_default_to_its_name(folder: Path, dimension: str) -> None:
    charm = load(with_head(folder, dimension=dimension, name="warm_tone")).manifest.heads[-1]
    assert (charm.title, charm.badge, charm.label("yes")) == ("warm tone", "WT", "yes")
    assert charm.evidence == []


def test_a_manifest_defines_the_display_words_of_a_head(folder: Path) -> None:
    words = {"title": "Warmth", "badge": "WM", "labels": {"yes": "warm"}}
    charm = load(with_head(folder, words=words)).manifest.heads[-1]
    assert (charm.title, charm.badge) == ("Warmth", "WM")
    assert [charm.label(name) for name in charm.labels] == ["no", "warm"]


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ({"evidence": ["maybe"]}, "maybe"),
        ({"evidence": ["no"], "dimension": "perceived"}, "not possible as evidence: no"),
        ({"kind": "level"}, "a head of kind level needs 3 labels"),
        ({"name": "emotional_reactions"}, "more than one head named emotional_reactions"),
        ({"name": "warm tone"}, "warm tone"),
        ({"labels": ["no", "a-b"], "evidence": ["a-b"]}, "a-b"),
        ({"dimension": "outcome"}, "must have the role client"),
    ],
)
def test_an_ambiguous_or_invalid_head_is_rejected(
    folder: Path, parts: dict[str, Any], word: str
) -> None:
    assert word in refusal(with_head(folder, **parts))


@pytest.mark.parametrize(
    "raw",
    [
        b"\xff\xfe",
        json.dumps(manifest()).encode().replace(b"tiny", b"t\xffny"),
        b'{"training": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001,
        b'{"unknown": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    ],
    ids=["utf-16", "not utf-8", "deep", "deep in an unknown field"],
)
def test_a_manifest_that_cannot_be_decoded_is_refused(folder: Path, raw: bytes) -> None:
    (folder / MANIFEST).write_bytes(raw)
    assert "is not a bundle manifest" in refusal(folder)


@pytest.mark.parametrize("dimension", ["expressed", "perceived"])
def test_a_head_in_place_of_the_computed_total_is_refused(folder: Path, dimension: str) -> None:
    body = manifest()
    body["heads"] = [HEAD, HEAD | {"name": "empathy_total", "dimension": dimension}]
    (folder / MANIFEST).write_text(json.dumps(body), "utf-8")
    assert "empathy_total" in refusal(folder)


SYMPATHY = {**HEAD, "name": "sympathy", "dimension": "perceived", "kind": "binary"}
UNDERSTANDING = {**SYMPATHY, "name": "understanding"}
VALIDITY = {
    "rating": "ESConv empathy",
    "words": "seekers' ratings",
    "r": 0.17,
    "low": 0.11,
    "high": 0.23,
    "n": 851,
    "sessions": 851,
}
GROUP = {
    "name": "Understanding and sympathy",
    "members": ["understanding", "sympathy"],
    "shown": "sympathy",
    "validity": [VALIDITY],
}


def with_groups(folder: Path, *groups: dict[str, Any]) -> Path:
    body = manifest()
    body["heads"] += [UNDERSTANDING, SYMPATHY]
    body["perceived"] = {"protocol": "made up", "groups": list(groups)}
    (folder / MANIFEST).write_text(json.dumps(body), "utf-8")
    return folder


def test_groups_of_perceived_heads_are_read(folder: Path) -> None:
    assert load(folder).manifest.perceived is None, "a manifest from before the groups"
    found = load(with_groups(folder, GROUP)).manifest.perceived
    assert found is not None
    assert msgspec.to_builtins(found.groups) == [GROUP]


@pytest.mark.parametrize(
    "groups",
    [
        [GROUP | {"members": ["understanding", "charm"], "shown": "understanding"}],
        [GROUP | {"members": ["emotional_reactions"], "shown": "emotional_reactions"}],
        [GROUP, GROUP | {"members": ["sympathy"]}],
        [GROUP | {"members": ["sympathy", "sympathy"]}],
        [GROUP | {"members": ["understanding"]}],
    ],
    ids=["unknown", "expressed", "in two groups", "twice in one", "shows another's"],
)
def test_groups_that_do_not_match_the_heads_are_rejected_with_instructions(
    folder: Path, groups: list[dict[str, Any]]
) -> None:
    assert "python -m models.evaluate.multitrait --bundle" in refusal(with_groups(folder, *groups))


@pytest.mark.parametrize(
    "group",
    [
        GROUP | {"name": ""},
        GROUP | {"members": []},
        GROUP | {"horoscope": 1},
        GROUP | {"validity": [VALIDITY | {"r": 1.7}]},
        GROUP | {"validity": [VALIDITY | {"n": 0}]},
    ],
    ids=["no name", "no members", "unknown field", "r beyond 1", "no ratings"],
)
def test_groups_with_another_structure_are_rejected(folder: Path, group: dict[str, Any]) -> None:
    assert "is not a bundle manifest" in refusal(with_groups(folder, group))
