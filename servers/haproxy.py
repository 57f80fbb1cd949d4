"""HAProxy with the configuration of ``servers/proxy/haproxy.cfg``, on loopback."""

import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

CONFIGURATION: Final = Path(__file__).with_name("proxy") / "haproxy.cfg"
PATIENCE: Final = 10.0
_SERVER: Final = re.compile(r"^    server .*\n", re.MULTILINE)
_PLAIN: Final = re.compile(r"^    bind :80\n", re.MULTILINE)
_SECURE: Final = re.compile(r"^    bind :443 ssl crt \S+", re.MULTILINE)


def binary() -> str | None:
    """The program, if it is installed."""
    return shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")


def configuration(port: int, certificate: Path, servers: Sequence[int], plain: int) -> str:
    """The configuration with other ports and another certificate; nothing else changes.

    Args:
        port: of HTTPS.
        certificate: PEM with certificate and key.
        servers: ports of the web processes.
        plain: port of HTTP, which redirects.
    """
    text = CONFIGURATION.read_text("utf-8")
    for pattern, replaced in (
        (_SECURE, f"    bind 127.0.0.1:{port} ssl crt {certificate}"),
        (_PLAIN, f"    bind 127.0.0.1:{plain}\n"),
    ):
        text, count = pattern.subn(lambda _, new=replaced: new, text)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"{CONFIGURATION} has {count} lines like {pattern.pattern}")
    lines = [f"    server web{n} 127.0.0.1:{one}\n" for n, one in enumerate(servers, start=1)]
    return _SERVER.sub("", text) + "".join(lines)


@contextmanager
def running(
    folder: Path, port: int, certificate: Path, servers: Sequence[int], plain: int
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the proxy in the foreground within the ``with`` block.

    Raises:
        RuntimeError: it is not installed, or does not start.
    """
    program = binary()
    if program is None:
        raise RuntimeError("HAProxy is not installed (Debian: haproxy)")
    file, log = folder / "haproxy.cfg", folder / "haproxy.log"
    file.write_text(configuration(port, certificate, servers, plain), "utf-8")
    with log.open("ab") as sink:
        process = subprocess.Popen(
            [program, "-db", "-f", file], stdin=subprocess.DEVNULL, stdout=sink, stderr=sink
        )
    try:
        give_up = time.monotonic() + PATIENCE
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError(f"HAProxy did not start:\n{log.read_text('utf-8')}")
            time.sleep(0.02)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
