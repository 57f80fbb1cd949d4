"""The commands of docs/tutorial.md lead to an alert; a local receiver stands for the Slack channel.

`make install` and the console's two commands are left out, and the broker gets a free port.
"""

import http.server
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_app.worker.kafka.broker import free_port

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
[SHOWN] = re.findall(r"^```\n(Rapport:.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
"""What the channel shows."""


@pytest.fixture
def channel() -> Iterator[tuple[str, "queue.Queue[str]"]]:
    """The Apprise address of a receiver on this machine, and the bodies that it has received."""
    bodies: queue.Queue[str] = queue.Queue()

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"json://127.0.0.1:{server.server_port}", bodies
    server.shutdown()
    server.server_close()


def test_the_tutorial_leads_to_an_alert(
    tmp_path: Path, channel: tuple[str, "queue.Queue[str]"]
) -> None:
    address, bodies = channel
    install, start, name, send, look, clean = BLOCKS
    assert "make install" in install
    assert "rapport web" in look
    port = free_port()
    name = name.replace("severities:", "allow: [127.0.0.1]\n    severities:")
    script = "\n".join(
        (start.replace("rapport demo broker", f"rapport demo broker --port {port}"), name)
    )
    script += "\n".join(("", send, "read -r _", clean))
    rapport = f'rapport() {{ "{sys.executable}" -m stream_app "$@"; }}'
    with (tmp_path / "log").open("wb") as log:
        shell = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-m", "-c", f"{rapport}\n{script}"],
            cwd=tmp_path,
            env={
                **os.environ,
                "TEAM_CHANNEL": address,
                "RAPPORT_KAFKA_BROKERS": f"127.0.0.1:{port}",
            },
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            assert "test message" in bodies.get(timeout=60)
            alert = bodies.get(timeout=90)
            shell.communicate(b"\n", timeout=30)
        except (queue.Empty, subprocess.TimeoutExpired):
            pytest.fail((tmp_path / "log").read_text()[-3000:])
        finally:
            _stop(shell.pid)
    told = json.loads(alert)
    assert f"{told['title']}\n\n{told['message']}" == SHOWN.strip()
    printed = (tmp_path / "log").read_text()
    assert shell.returncode == 0, printed[-3000:]
    for line in ("worker.start", "team-channel: accepted", "14 events sent to dialogue.turns"):
        assert f"`{line}`" in PAGE.read_text("utf-8")
        assert line in printed


def _stop(session: int) -> None:
    """Kill what is left of the shell's jobs; each has a process group in the shell's session."""
    listed = subprocess.run(
        ["ps", "-o", "pid=", "-s", str(session)], capture_output=True, text=True, check=False
    )
    for pid in map(int, listed.stdout.split()):
        os.kill(pid, signal.SIGKILL)
