"""Runs the notifiers of all targets and escalations, each in its own thread.

A slow target delays no others.
"""

import threading
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter

from stream_app.notifications.rounds import Rounds


def deliveries_counter() -> Counter:
    """Counter of delivery states and failed attempts, not in the default registry."""
    return Counter(
        "rapport_deliveries",
        "Alerts by delivery state at a target, and failed attempts",
        ["target", "result"],
        registry=None,
    )


class NotifierGroup:
    """Runs the notifiers until stopped, and reports their health."""

    def __init__(self, notifiers: Sequence[Rounds], counter: Counter) -> None:
        self._notifiers = notifiers
        self._failures: list[Exception] = []
        self.registry = CollectorRegistry()
        self.registry.register(counter)

    @property
    def names(self) -> list[str]:
        """The names of all notifiers."""
        return [notifier.name for notifier in self._notifiers]

    def stop(self) -> None:
        """Stop after the deliveries in progress."""
        for notifier in self._notifiers:
            notifier.stop()

    def run(self) -> None:
        """Run until ``stop``, or until a notifier fails; then stop all and raise its error."""
        threads = [
            threading.Thread(target=self._run, args=(notifier,), name=f"notify {notifier.name}")
            for notifier in self._notifiers
        ]
        for thread in threads:
            thread.start()
        for thread in threads:  # without a lock that a signal handler calling `stop` could wait for
            thread.join()
        if self._failures:
            raise self._failures[0]

    def not_alive(self) -> list[str]:
        """Reasons to restart the process; empty if there are none."""
        return [
            f"{notifier.name}: {reason}"
            for notifier in self._notifiers
            for reason in notifier.not_alive()
        ]

    def not_ready(self) -> list[str]:
        """Problems that prevent deliveries; empty if there are none."""
        return [
            f"{notifier.name}: {reason}"
            for notifier in self._notifiers
            for reason in notifier.not_ready()
        ]

    def _run(self, notifier: Rounds) -> None:
        try:
            notifier.run()
        except Exception as problem:  # noqa: BLE001  # `run` raises it in the main thread
            self._failures.append(problem)
            self.stop()
