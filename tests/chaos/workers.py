"""Supervised worker processes."""

from __future__ import annotations

import random
import signal
import subprocess
import threading
import time

from tests.e2e.service import Service

SLOWEST_STOP = 60.0


class Workers:
    """Worker processes of which one that exits is restarted."""

    def __init__(self, service: Service, least: int) -> None:
        self._service = service
        self._least = least
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[bytes]] = []
        self._suspended = False
        self.restarted = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._supervise, daemon=True)
        for _ in range(least):
            self.start()
        self._thread.start()

    def start(self) -> None:
        """Start a worker."""
        with self._lock:
            self._running.append(self._service.start_worker())

    def all(self) -> list[subprocess.Popen[bytes]]:
        """All running workers."""
        with self._lock:
            return [worker for worker in self._running if worker.poll() is None]

    def any(self, chance: random.Random) -> subprocess.Popen[bytes] | None:
        """A random running worker."""
        alive = self.all()
        return chance.choice(alive) if alive else None

    def end(self, chance: random.Random, how: signal.Signals) -> None:
        """End a random worker; supervision starts another."""
        worker = self.any(chance)
        if worker is not None:
            worker.send_signal(how)

    def suspend(self) -> None:
        """Stop all workers and start none until ``resume``."""
        with self._lock:
            self._suspended = True
        for worker in (workers := self.all()):
            worker.send_signal(signal.SIGTERM)
        give_up = time.monotonic() + SLOWEST_STOP
        for worker in workers:
            try:
                worker.wait(max(0.1, give_up - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()

    def resume(self) -> None:
        """Start the workers again."""
        with self._lock:
            self._suspended = False

    def replace_all(self, **settings: object) -> None:
        """End all workers; supervision starts others with these settings."""
        self._service.settings = self._service.settings.model_copy(update=settings)
        for worker in self.all():
            worker.send_signal(signal.SIGTERM)

    def _supervise(self) -> None:
        while not self._stopped.wait(0.5):
            with self._lock:
                ended = [worker for worker in self._running if worker.poll() is not None]
                self._running = [worker for worker in self._running if worker.poll() is None]
                self.restarted += len(ended)
                missing = 0 if self._suspended else self._least - len(self._running)
            for _ in range(missing):
                self.start()

    def stop(self) -> None:
        """Stop the supervision; the service stops the workers."""
        self._stopped.set()
        self._thread.join()
