"""Master keys wrap and unwrap; their files are created once, for their owner alone."""

import threading
from pathlib import Path

import pytest

from stream_app.errors import SealingError
from stream_app.sealing import sources
from stream_app.sealing.envelope import new_key
from stream_app.sealing.keyring import MasterKeys, key_id
from stream_app.sealing.sources import KeySource, as_text


def keys(file: Path) -> MasterKeys:
    return MasterKeys(KeySource("MASTER_KEY", file=file))


def test_the_first_key_wraps_and_every_key_unwraps(tmp_path: Path) -> None:
    file, old, new = tmp_path / "keys", new_key(), new_key()
    sources.create(file, old)
    master, data_key = keys(file), new_key()
    wrapped = master.wrap(data_key, "s")
    assert data_key not in wrapped.sealed
    assert wrapped.master_key == master.active == key_id(old)
    sources.replace(file, [new, old])
    assert master.active == key_id(new), "a changed file is read again"
    assert master.unwrap(wrapped, "s") == data_key
    with pytest.raises(SealingError):
        master.unwrap(wrapped, "another session")
    sources.replace(file, [new])
    with pytest.raises(SealingError, match=f"master key {key_id(old)} is missing"):
        master.unwrap(wrapped, "s")


def test_a_setting_may_hold_several_keys() -> None:
    one, other = new_key(), new_key()
    source = KeySource("MASTER_KEY", text=f"{as_text(one)},{as_text(other).rstrip('=')}")
    assert source.read() == [one, other]


@pytest.mark.parametrize("text", ["", "# none", "zanzibar", "YWJj", "é"])
def test_what_is_no_key_is_refused_without_being_quoted(text: str, tmp_path: Path) -> None:
    with pytest.raises(SealingError, match="rapport keys new") as refused:
        KeySource("MASTER_KEY", text=text).read()
    assert "zanzibar" not in str(refused.value)
    file = tmp_path / "keys"
    file.write_text(text, "utf-8")
    with pytest.raises(SealingError, match="rapport keys new"):
        keys(file).source.read()


def test_without_a_key_the_error_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(SealingError, match=r"RAPPORT_MASTER_KEY_FILE is not set.*rapport keys new"):
        KeySource("MASTER_KEY").read()
    with pytest.raises(SealingError, match="cannot be read: No such file"):
        keys(tmp_path / "missing").source.read()


def test_processes_that_start_together_agree_on_one_new_file(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    found: list[bytes] = []
    start = threading.Barrier(8)

    def read() -> None:
        start.wait()
        found.extend(KeySource("MASTER_KEY", file=file, create=True).read())

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["keys"]
    sources.replace(file, [new_key()])
    assert file.stat().st_mode & 0o777 == 0o600
    assert not sources.readable_by_others(file)
    file.chmod(0o640)
    assert sources.readable_by_others(file)


def test_a_secret_that_kubernetes_mounted_for_the_group_of_the_pod_is_out_of_others_sight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of root and the pod's group with mode 0440, in a process of another user."""
    file = tmp_path / "keys"
    file.write_text("", "utf-8")
    found = file.stat()
    monkeypatch.setattr("os.geteuid", lambda: found.st_uid + 1)
    monkeypatch.setattr("os.getegid", lambda: found.st_gid)
    for mode, exposed in ((0o440, False), (0o444, True), (0o460, True)):
        file.chmod(mode)
        assert sources.readable_by_others(file) is exposed
    file.chmod(0o440)
    monkeypatch.setattr("os.getegid", lambda: found.st_gid + 1)
    assert sources.readable_by_others(file)
