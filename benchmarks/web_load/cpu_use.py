"""CPU time and memory of the parts of an installation on one machine."""

import threading
import time
from collections.abc import Mapping
from typing import Final

import psutil

LOOK_EVERY: Final = 0.5
_PARTS: Final[Mapping[str, str]] = {
    "web": "stream_app.cli web",
    "proxy": "haproxy",
    "writer": "benchmarks.web_load.scored_turns",
    "visitors": "benchmarks.web_load.visitors",
    "database": "postgres",
    "broker": "tansu",
}
"""By part, what its command lines contain."""


class Sample:
    """CPU use between two times; taken by a thread, while the visitors' process runs."""

    def __init__(self, start: float, seconds: float) -> None:
        self._over = seconds
        self._first: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._thread = threading.Thread(target=self._watch, args=(start,))
        self._thread.start()

    def used(self) -> dict[str, float]:
        """CPU seconds per second by part."""
        self._thread.join()
        return {
            part: round((self._last[part] - self._first[part]) / self._over, 3)
            for part in self._first
        }

    def _watch(self, start: float) -> None:
        time.sleep(max(0.0, start - time.time()))
        self._first = self._last = seconds()
        end = start + self._over
        while (left := end - time.time()) > 0:
            time.sleep(min(LOOK_EVERY, left))
            self._last = {part: max(self._last[part], now) for part, now in seconds().items()}


def seconds() -> dict[str, float]:
    """CPU seconds so far by part, and of the ``machine``."""
    found = dict.fromkeys(_PARTS, 0.0)
    for part, process in _processes():
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        found[part] += used.user + used.system
    all_of_it = psutil.cpu_times()
    found["machine"] = sum(all_of_it) - all_of_it.idle - all_of_it.iowait
    return found


def web_memory() -> list[float]:
    """Resident MiB of each web process."""
    return [process.memory_info().rss / 2**20 for part, process in _processes() if part == "web"]


def _processes() -> list[tuple[str, psutil.Process]]:
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            line = " ".join(process.cmdline())
        except psutil.NoSuchProcess:
            continue
        found += [(part, process) for part, words in _PARTS.items() if words in line][:1]
    return found
