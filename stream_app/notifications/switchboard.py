"""All targets in one process, a thread each: a slow one holds up nobody else."""

import threading
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter

from stream_app.notifications.notifier import Notifier


def deliveries_counter() -> Counter:
    """What became of alerts, and attempts that failed; in a registry of its own."""
    return Counter(
        "rapport_deliveries",
        "Alerts by what became of them at a target, and attempts that failed",
        ["target", "result"],
        registry=None,
    )


class Switchboard:
    """Runs the notifiers until stopped; answers for all of them."""

    def __init__(self, notifiers: Sequence[Notifier], counter: Counter) -> None:
        self._notifiers = notifiers
        self._failures: list[Exception] = []
        self.registry = CollectorRegistry()
        self.registry.register(counter)

    @property
    def targets(self) -> list[str]:
        """The names of all targets."""
        return [notifier.target.name for notifier in self._notifiers]

    def stop(self) -> None:
        """End after the deliveries in hand."""
        for notifier in self._notifiers:
            notifier.stop()

    def run(self) -> None:
        """Until ``stop``, or until a notifier fails: then all end, and its error is raised."""
        threads = [
            threading.Thread(
                target=self._run, args=(notifier,), name=f"notify {notifier.target.name}"
            )
            for notifier in self._notifiers
        ]
        for thread in threads:
            thread.start()
        for thread in threads:  # no lock that a signal's call of `stop` might wait for
            thread.join()
        if self._failures:
            raise self._failures[0]

    def not_alive(self) -> list[str]:
        """Why the process should be started again; empty while all are alive."""
        return [
            f"{notifier.target.name}: {reason}"
            for notifier in self._notifiers
            for reason in notifier.not_alive()
        ]

    def not_ready(self) -> list[str]:
        """What keeps alerts from being delivered; empty when nothing does."""
        return [
            f"{notifier.target.name}: {reason}"
            for notifier in self._notifiers
            for reason in notifier.not_ready()
        ]

    def _run(self, notifier: Notifier) -> None:
        try:
            notifier.run()
        except Exception as problem:  # noqa: BLE001  # `run` raises it in the main thread
            self._failures.append(problem)
            self.stop()
