import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from stream_app import cli
from stream_app.store.stream.repository import Store
from tests.store import databases, judging
from tests.store.batches import prepare
from tests.store.databases import open_store

Rapport = Callable[..., subprocess.CompletedProcess[str]]
NewStore = Callable[[int], Store]


@pytest.fixture
def new_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log_settings_kept: object
) -> Iterator[NewStore]:
    """Makes the database of the commands, with this number of sessions for each of two teams."""
    with ExitStack() as opened:

        def new(sessions: int) -> Store:
            url = databases.sqlite(tmp_path / "one.db")
            monkeypatch.setenv("RAPPORT_DATABASE_URL", url)
            store = open_store(url)
            opened.callback(store.close)
            judging.fill(prepare(store), sessions)
            return store

        yield new


@pytest.fixture
def rapport(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log_settings_kept: object) -> Rapport:
    """Runs the command's `main` in this process and in an empty folder: imports cost a second."""

    def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        argv = ["rapport", *map(str, arguments)]
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        with (
            monkeypatch.context() as patched,
            chdir(tmp_path),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            patched.setattr(sys, "argv", argv)
            for name, value in environment.items():
                patched.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                cli.main()
        written = (stream.buffer.getvalue().decode() for stream in (out, err))
        return subprocess.CompletedProcess(argv, int(ended.value.code or 0), *written)

    return run


@pytest.fixture
def rapport_process(tmp_path: Path) -> Rapport:
    """Runs the command as a process in an empty folder, as a user does."""

    def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "stream_app.cli", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    return run
