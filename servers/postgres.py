"""A temporary PostgreSQL server on loopback."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import psycopg

from stream_app.worker.kafka.broker import free_port

PATIENCE = 30.0


def binaries() -> Path | None:
    """The folder with ``initdb`` and ``postgres``, if the server is installed."""
    if (found := shutil.which("initdb")) and shutil.which("postgres"):
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return next((f for f in reversed(folders) if (f / "initdb").exists()), None)


class Server:
    """A server with all its files in one temporary folder.

    `more`: settings that override the defaults, which suit short tests (no fsync).
    `parent`: the folder for its folder; by default the system's for temporary files.
    """

    def __init__(
        self,
        bin_folder: Path,
        more: Mapping[str, object] = MappingProxyType({}),
        parent: Path | None = None,
    ) -> None:
        self._bin = bin_folder
        self._more = dict(more)
        self._process: subprocess.Popen[bytes] | None = None
        self._user: int | None = None
        self._group: int | None = None
        self._databases = 0
        self.folder = Path(tempfile.mkdtemp(prefix="rapport-pg-", dir=parent))
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            user = pwd.getpwnam("postgres")
            self._user, self._group = user.pw_uid, user.pw_gid
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        self.port = free_port()
        subprocess.run(
            [
                self._bin / "initdb",
                f"--pgdata={self.folder}/data",
                *("--username=rapport", "--auth=trust", "--encoding=UTF8"),
                *("--no-locale", "--no-sync"),
            ],
            cwd=self.folder,
            check=True,
            stdout=subprocess.DEVNULL,
            user=self._user,
            group=self._group,
        )
        self.start()

    def url(self, database: str = "postgres") -> str:
        """The SQLAlchemy URL of a database."""
        return f"postgresql://rapport@127.0.0.1:{self.port}/{database}"

    def new_database(self, like: str | None = None) -> str:
        """Create a database, empty or copied from one without connections; return its URL."""
        self._databases += 1
        name = f"test_{self._databases}"
        template = like.rpartition("/")[2] if like else "template1"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            # since release 15 it logs every page by default, at twice the processor time
            copied = " STRATEGY file_copy" if connection.info.server_version >= 150000 else ""
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}{copied}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Drop a database."""
        name = url.rpartition("/")[2]
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def back_up(self, url: str, file: Path) -> None:
        """Write a consistent copy of a database in use to a file."""
        self._run("pg_dump", "--format=custom", f"--file={file}", url)

    def restore(self, file: Path, url: str) -> None:
        """Replace a database by its backup; connections to it are closed."""
        self.drop(url)
        name = url.rpartition("/")[2]
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        self._run("pg_restore", "--exit-on-error", f"--dbname={url}", file)

    def _run(self, program: str, *arguments: str | Path) -> None:
        subprocess.run([self._bin / program, *arguments], check=True)

    def serve_tls(self, certificate: bytes, key: bytes, user: str, password: str) -> None:
        """Restart with this certificate; this user then needs TLS and the password (SCRAM)."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {user} SUPERUSER LOGIN PASSWORD '{password}'")
        for name, content in (("server.crt", certificate), ("server.key", key)):
            file = self.folder / name
            file.write_bytes(content)
            file.chmod(0o600)
            if self._user is not None:
                os.chown(file, self._user, self._group or -1)
            self._more[f"ssl_{name[-3:].replace('crt', 'cert')}_file"] = file
        self._more["ssl"] = "on"
        rules = self.folder / "data" / "pg_hba.conf"
        mine = f"hostssl all {user} all scram-sha-256\nhost all {user} all reject\n"
        rules.write_text(mine + rules.read_text("utf-8"), "utf-8")
        self.stop()
        self.start()

    def start(self) -> None:
        """Start and wait until it accepts connections."""
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.folder,
            "fsync": "off",
            "shared_buffers": "16MB",
            "TimeZone": "Pacific/Auckland",
            **self._more,
        }
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(self._bin / "postgres", "-D", self.folder / "data"),
                    *(f"--{name}={value}" for name, value in settings.items()),
                ],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                user=self._user,
                group=self._group,
            )
        give_up = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
            except psycopg.OperationalError:
                if time.monotonic() > give_up or self._process.poll() is not None:
                    raise
                time.sleep(0.05)
            else:
                return

    def start_if_ended(self) -> bool:
        """Restart the server if it has exited unexpectedly; return whether it had."""
        ended = self._process is not None and self._process.poll() is not None
        if ended:
            self.start()
        return ended

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Close all connections and stop: SIGINT is the "fast" mode, SIGQUIT "immediate"."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
            self._process = None

    def remove(self) -> None:
        """Stop and delete all files."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder)
