"""A release is checked before it is built, and described with the digests of what was built."""

import hashlib
from pathlib import Path

import pytest

from servers import release
from stream_app import __version__

CHANGELOG = f"# Changelog\n\n## {__version__} – 2026-11-27\n\n## 0.0.9 – 2026-01-01\n"


def test_the_version_is_the_packages_and_the_changelogs() -> None:
    release.check_version(__version__, CHANGELOG)
    with pytest.raises(release.NotReady, match=rf"has version {__version__}, not 9\.9\.9: set it"):
        release.check_version("9.9.9", CHANGELOG)
    with pytest.raises(release.NotReady, match=r'newest section of CHANGELOG\.md is "Unreleased"'):
        release.check_version(__version__, "## Unreleased\n" + CHANGELOG)


def test_provenance_names_what_was_built_and_what_it_was_built_of(tmp_path: Path) -> None:
    wheel, lock = tmp_path / "a.whl", tmp_path / "worker.txt"
    wheel.write_bytes(b"wheel")
    lock.write_bytes(b"lock")
    commit = "0" * 40
    statement = release.provenance([wheel], [lock], commit)
    built = {"name": "a.whl", "digest": {"sha256": hashlib.sha256(b"wheel").hexdigest()}}
    assert statement["subject"] == [built]
    assert statement["predicate"]["buildDefinition"]["resolvedDependencies"] == [
        {"uri": "git", "digest": {"gitCommit": commit}},
        {"uri": "worker.txt", "digest": {"sha256": hashlib.sha256(b"lock").hexdigest()}},
    ]


def test_every_image_has_a_lock_file() -> None:
    assert all((release.REQUIREMENTS / f"{image}.txt").is_file() for image in release.IMAGES)
