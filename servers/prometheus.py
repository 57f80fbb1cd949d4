"""A temporary Prometheus server on loopback, and its tool ``promtool``."""

import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
from ruamel.yaml import YAML

from stream_app.worker.kafka.broker import free_port

CONFIGURATION: Final = Path(__file__).parent / "monitoring" / "prometheus.yml"
PATIENCE: Final = 30.0
INTERVAL: Final = "500ms"


class PrometheusMissing(Exception):
    """The programs ``prometheus`` and ``promtool`` are not installed."""


class PromtoolFailed(Exception):
    """``promtool`` found a mistake; the message is its output."""


def promtool(*arguments: str | Path) -> str:
    """Run ``promtool`` and return what it printed.

    Raises:
        PrometheusMissing: it is not installed.
        PromtoolFailed: it found a mistake.
    """
    command = [_program("promtool"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PromtoolFailed(done.stdout + done.stderr)
    return done.stdout


class Server:
    """A server with the shipped configuration and rules that scrapes these addresses.

    ``targets``: addresses by the name of a job in the shipped configuration. ``folder``: for its
    configuration and data.
    """

    def __init__(self, folder: Path, targets: Mapping[str, Sequence[str]]) -> None:
        program = _program("prometheus")
        self.url = f"http://127.0.0.1:{free_port()}"
        configuration = folder / "prometheus.yml"
        _write(configuration, targets)
        with (folder / "prometheus.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    program,
                    f"--config.file={configuration}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address={self.url.removeprefix('http://')}",
                ],
                stdout=log,
                stderr=log,
            )
        self._wait_until_ready()

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of an instant query, now.

        Raises:
            httpx.HTTPStatusError: the expression is not valid.
        """
        answer = httpx.post(
            f"{self.url}/api/v1/query", data={"query": expression}, timeout=PATIENCE
        )
        answer.raise_for_status()
        data = answer.json()["data"]
        return list(data["result"]) if data["resultType"] == "vector" else [data]

    def stop(self) -> None:
        """Stop; the folder is the caller's."""
        self._process.terminate()
        self._process.wait(PATIENCE)

    def _wait_until_ready(self) -> None:
        give_up = time.monotonic() + PATIENCE
        while True:
            try:
                httpx.get(f"{self.url}/-/ready", timeout=PATIENCE).raise_for_status()
            except httpx.HTTPError:
                if time.monotonic() > give_up or self._process.poll() is not None:
                    self._process.kill()
                    raise
                time.sleep(0.05)
            else:
                return


def _write(file: Path, targets: Mapping[str, Sequence[str]]) -> None:
    """The shipped configuration with these addresses in place of its own, scraped more often."""
    yaml = YAML(typ="safe")
    shipped = yaml.load(CONFIGURATION)
    shipped["global"] = dict.fromkeys(shipped["global"], INTERVAL)
    shipped["rule_files"] = [str(CONFIGURATION.parent / name) for name in shipped["rule_files"]]
    shipped["scrape_configs"] = [
        {
            "job_name": job["job_name"],
            "static_configs": [{"targets": list(targets.get(job["job_name"], ()))}],
        }
        for job in shipped["scrape_configs"]
    ]
    yaml.dump(shipped, file)


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise PrometheusMissing(f"{name} is not installed (Debian package prometheus)")
    return found
