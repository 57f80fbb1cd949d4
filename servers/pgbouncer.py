"""A temporary PgBouncer on loopback, in transaction mode, before a temporary PostgreSQL."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

from servers.postgres import PATIENCE, Server
from stream_app.worker.kafka.broker import free_port

CONNECTIONS = 4
"""To the server, for all clients together: few, so that clients take turns on each."""


def binary() -> str | None:
    """The program, if it is installed (Debian package ``pgbouncer``)."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class Pooler:
    """A pooler with all its files in one temporary folder."""

    def __init__(self, program: str, server: Server) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rapport-pgbouncer-"))
        self.port = free_port()
        users, settings = self.folder / "users.txt", self.folder / "pgbouncer.ini"
        users.write_text('"rapport" ""\n', "utf-8")
        settings.write_text(
            "[databases]\n"
            f"* = host=127.0.0.1 port={server.port} user=rapport\n"
            "[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = any\nauth_file = {users}\n"
            f"pool_mode = transaction\ndefault_pool_size = {CONNECTIONS}\n"
            f"logfile = {self.folder}/log\n",
            "utf-8",
        )
        user = None
        if os.geteuid() == 0:  # PgBouncer refuses to run as root
            user = pwd.getpwnam("postgres").pw_uid
            for path in (self.folder, users, settings):
                os.chown(path, user, -1)
        self._process = subprocess.Popen(
            [program, "--quiet", settings], cwd=self.folder, stderr=subprocess.DEVNULL, user=user
        )
        give_up = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self.url(server.url())).close()
            except psycopg.OperationalError:
                if time.monotonic() > give_up or self._process.poll() is not None:
                    raise
                time.sleep(0.05)
            else:
                return

    def url(self, direct: str) -> str:
        """The URL of a database of the server, through the pooler."""
        return f"postgresql://rapport@127.0.0.1:{self.port}/{direct.rpartition('/')[2]}"

    def remove(self) -> None:
        """Stop and delete all files."""
        self._process.kill()
        self._process.wait(PATIENCE)
        shutil.rmtree(self.folder)
