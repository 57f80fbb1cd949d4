"""The commands in docs/api.md run as written."""

import asyncio
import os
import re
import shutil
import subprocess
from pathlib import Path

from stream_app.worker.kafka.topics import declare_topics
from tests.conftest import _missing, own_names
from tests.web.api.conftest import filled
from tests.web.server import Web

PAGE = Path(__file__).parents[3] / "docs" / "api.md"
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def test_the_commands_in_the_docs_run(tmp_path: Path, embedded_broker: str) -> None:
    if not (shutil.which("curl") and shutil.which("jq")):
        _missing("the page's commands need curl and jq")
    web = filled(Web(tmp_path, embedded_broker, own_names()))
    asyncio.run(declare_topics(web.settings))
    try:
        web.start()
        given = {
            "URL": web.url,
            "TOKEN": web.tokens["nora"],
            "INGEST_TOKEN": web.tokens["pump"],
            "SESSION": "north-1",
        }
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "\n".join(BLOCKS)],
            cwd=tmp_path,
            env={**os.environ, **given},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]
    finally:
        web.stop()
    assert len(BLOCKS) >= 6
    assert '"state":"acknowledged"' in done.stdout
    assert '"accepted":2' in done.stdout
    for name in ("sessions.csv", "turns.parquet", "corpus.zip"):
        assert (tmp_path / name).stat().st_size > 100
