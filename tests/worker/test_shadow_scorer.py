"""The scorer of a shadow: what it shares with the one in force, and which bundles are refused."""

import json
import shutil
from pathlib import Path

import pytest

from stream_app import bootstrap
from stream_app.contracts.events import Role
from stream_app.errors import BundleError
from stream_app.inference.bundles.bundle import MANIFEST, SHIPPED, load, share_encoder
from stream_app.inference.scorer import OnnxScorer
from stream_app.settings import Settings

NANO = SHIPPED / "nano"


@pytest.fixture
def renamed(tmp_path: Path) -> Path:
    """The nano bundle under another name."""
    folder = tmp_path / "renamed"
    shutil.copytree(NANO, folder)
    content = json.loads((folder / MANIFEST).read_bytes())
    (folder / MANIFEST).write_text(json.dumps({**content, "name": "renamed"}), "utf-8")
    return folder


@pytest.fixture(scope="module")
def in_force() -> OnnxScorer:
    return OnnxScorer(load(NANO))


def test_a_bundle_with_the_same_encoder_shares_it(in_force: OnnxScorer, renamed: Path) -> None:
    tried = bootstrap.shadow_scorer(Settings(bundle=NANO), renamed, in_force)
    assert tried.encoder is in_force.encoder
    assert tried.tokenizer is in_force.tokenizer
    assert tried.head is not in_force.head
    assert len(tried.encode(["Hello there."], [Role.CLIENT])) == 1


def test_another_encoder_is_not_shared() -> None:
    assert not share_encoder(load(NANO).manifest, load(SHIPPED / "default").manifest)


def test_the_bundle_in_force_is_refused(in_force: OnnxScorer) -> None:
    with pytest.raises(BundleError, match="is the bundle in force"):
        bootstrap.shadow_scorer(Settings(bundle=NANO), NANO, in_force)


def test_a_window_that_the_shadow_does_not_support_is_refused(
    in_force: OnnxScorer, renamed: Path
) -> None:
    content = json.loads((renamed / MANIFEST).read_bytes())
    content["head"]["slots"] = 2
    (renamed / MANIFEST).write_text(json.dumps(content), "utf-8")
    with pytest.raises(BundleError, match="supports 2 neighbouring turns"):
        bootstrap.shadow_scorer(Settings(bundle=NANO), renamed, in_force)
