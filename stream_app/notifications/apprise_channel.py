"""Slack, Teams, e-mail and whatever else Apprise has an address for.

An Apprise address holds its credentials, and Apprise names addresses in its logs and exceptions:
`stream_app.logs` keeps those logs quiet, and nothing of an exception but its type is passed on.
"""

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final

from stream_app.contracts.scores import AlertState
from stream_app.errors import RapportError
from stream_app.notifications.notification import Notification, NotTaken, Unanswered
from stream_app.notifications.words import text, title

if TYPE_CHECKING:
    from apprise import Apprise

_KINDS: Final = {"critical": "failure", "warning": "warning", "info": "info"}


def service(url: str) -> "Apprise":
    """Apprise over one address; nothing is contacted.

    Raises:
        RapportError: Apprise does not understand it; the text does not quote it.
    """
    from apprise import Apprise  # noqa: PLC0415  # 183 plugins: only where a target asks for them

    found = Apprise()
    plugin = Apprise.instantiate(url)
    if plugin is None or not found.add(plugin):
        raise RapportError("not an address that Apprise understands")
    return found


class AppriseChannel:
    """Sends words to one Apprise address."""

    def __init__(self, target: str, url: str, external_url: str, timeout: float) -> None:
        """``timeout``: seconds that Apprise may take altogether for one notification."""
        self._target = target
        self._service = service(url)
        self._external_url = external_url
        self._timeout = timeout
        self._unanswered: dict[str, Future[bool]] = {}

    def send(self, notification: Notification) -> None:
        """Apprise's `notify` blocks, so it runs beside and is given up after ``timeout``.

        One that is given up may still end well: that counts when it is tried again. Until it
        has ended there is no second one. See ``Channel``.
        """
        call = self._unanswered.pop(notification.notification_id, None)
        if call is None or (call.done() and not _went_well(call)):
            if any(not other.done() for other in self._unanswered.values()):
                raise NotTaken("an attempt before it has not ended yet")
            call = self._begin(notification)
        try:
            taken = call.result(self._timeout)
        except TimeoutError:
            if not call.done():
                self._unanswered[notification.notification_id] = call
                raise Unanswered(f"Apprise took longer than {self._timeout:g} s") from None
            raise NotTaken("Apprise failed (TimeoutError)") from None
        except Exception as problem:  # noqa: BLE001  # 183 plugins; their texts may hold the address
            raise NotTaken(f"Apprise failed ({type(problem).__name__})") from None
        if not taken:
            raise NotTaken("Apprise could not send it")

    def _begin(self, notification: Notification) -> Future[bool]:
        from apprise import NotifyFormat, NotifyType  # noqa: PLC0415

        call: Future[bool] = Future()

        def notify() -> None:
            try:
                call.set_result(
                    bool(
                        self._service.notify(
                            title=title(notification),
                            body=text(notification, self._external_url),
                            notify_type=NotifyType(_kind(notification)),
                            body_format=NotifyFormat.TEXT,
                        )
                    )
                )
            except Exception as problem:  # noqa: BLE001  # it is for who waits for the call
                call.set_exception(problem)

        # a daemon: a plugin that never returns does not keep the process from ending
        threading.Thread(target=notify, name=f"apprise {self._target}", daemon=True).start()
        return call


def _went_well(call: Future[bool]) -> bool:
    return call.exception() is None and call.result()


def _kind(notification: Notification) -> str:
    if all(alert.state is AlertState.RESOLVED for alert in notification.alerts):
        return "success"
    firing = next(a for a in notification.alerts if a.state is AlertState.FIRING)
    return _KINDS.get(firing.severity, "warning")
