"""Output files are complete or not there."""

import os
import stat
from pathlib import Path

import pytest

from stream_app.recordings.whole_file import written_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write_half(file: Path, error: type[BaseException]) -> None:
    with written_whole(file) as stream:
        stream.write(b"half")
        raise error


def test_a_file_appears_at_the_end_and_replaces_the_earlier_one(tmp_path: Path) -> None:
    file = tmp_path / "out"
    for content in (b"one", b"two"):
        with written_whole(file) as stream:
            stream.write(content)
            assert not file.exists() or file.read_bytes() == b"one"
        assert file.read_bytes() == content
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_after_an_error_nothing_has_changed(tmp_path: Path, error: type[BaseException]) -> None:
    file = tmp_path / "out"
    for before in (None, b"earlier"):
        if before is not None:
            file.write_bytes(before)
        with pytest.raises(error):
            write_half(file, error)
        assert names(tmp_path) == ([] if before is None else ["out"])
    assert file.read_bytes() == b"earlier"


def test_mode_and_link_of_the_earlier_file_are_kept(tmp_path: Path) -> None:
    file, link = tmp_path / "out", tmp_path / "link"
    file.write_bytes(b"")
    file.chmod(0o640)
    link.symlink_to(file)
    with written_whole(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    (tmp_path / "usual").write_bytes(b"")
    with written_whole(tmp_path / "out"):
        pass
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_without_the_right_to_write_is_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_bytes(b"mine")
    file.chmod(0o400)
    with pytest.raises(PermissionError), written_whole(file):
        pass
    assert file.read_bytes() == b"mine"


def test_a_device_is_written_directly() -> None:
    with written_whole(Path("/dev/null")) as stream:
        stream.write(b"gone")
    assert Path("/dev/null").is_char_device()
