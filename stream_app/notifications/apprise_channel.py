"""Channel to Slack, Teams, e-mail and the other services supported by Apprise (extra ``apprise``).

An Apprise address contains credentials, and Apprise puts addresses into its logs and exceptions.
So `stream_app.logs` silences those logs, and only the type of an exception is reported.
"""

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final

from stream_app.contracts.scores import AlertState
from stream_app.errors import RapportError
from stream_app.notifications.connection_guard import AllowedTargets, guarded
from stream_app.notifications.message_text import text, title
from stream_app.notifications.notification import DeliveryFailed, DeliveryUnconfirmed, Notification

if TYPE_CHECKING:
    from apprise import Apprise

_KINDS: Final = {"critical": "failure", "warning": "warning", "info": "info"}


def service(url: str) -> "Apprise":
    """Create an Apprise service for one address, without contacting it.

    Raises:
        RapportError: Apprise does not understand the address; the message does not quote it.
    """
    from apprise import Apprise  # noqa: PLC0415  # imports 183 plugins, so only if needed

    found = Apprise()
    plugin = Apprise.instantiate(url)
    if plugin is None or not found.add(plugin):
        raise RapportError("not an address that Apprise understands")
    plugin.redirects = False
    return found


class AppriseChannel:
    """Sends text messages to one Apprise address."""

    def __init__(
        self, target: str, url: str, external_url: str, timeout: float, allowed: AllowedTargets
    ) -> None:
        """``timeout``: total seconds that Apprise may take for one notification.

        ``allowed``: addresses that are not public.
        """
        self._target = target
        self._service = service(url)
        self._external_url = external_url
        self._timeout = timeout
        self._allowed = allowed
        self._unanswered: dict[str, Future[bool]] = {}

    def send(self, notification: Notification) -> None:
        """Run Apprise's blocking `notify` in a thread and stop waiting after ``timeout``.

        A timed-out call may still succeed: the next attempt at the same notification uses its
        result. No second call starts before it has ended. See ``Channel``.
        """
        call = self._unanswered.pop(notification.notification_id, None)
        if call is None or (call.done() and not _succeeded(call)):
            if any(not other.done() for other in self._unanswered.values()):
                raise DeliveryFailed("an earlier attempt has not ended yet")
            call = self._begin(notification)
        try:
            accepted = call.result(self._timeout)
        except TimeoutError:
            if not call.done():
                self._unanswered[notification.notification_id] = call
                raise DeliveryUnconfirmed(f"Apprise took longer than {self._timeout:g} s") from None
            raise DeliveryFailed("Apprise failed (TimeoutError)") from None
        except DeliveryFailed:
            raise
        except Exception as problem:  # noqa: BLE001  # 183 plugins; their texts may hold the address
            raise DeliveryFailed(f"Apprise failed ({type(problem).__name__})") from None
        if not accepted:
            raise DeliveryFailed("Apprise could not send it")

    def _begin(self, notification: Notification) -> Future[bool]:
        from apprise import NotifyFormat, NotifyType  # noqa: PLC0415

        call: Future[bool] = Future()

        def notify() -> None:
            accepted = False
            failure: Exception | None = None
            with guarded(self._allowed) as guard:
                try:
                    answer = self._service.notify(
                        title=title(notification),
                        body=text(notification, self._external_url),
                        notify_type=NotifyType(_kind(notification)),
                        body_format=NotifyFormat.TEXT,
                    )
                    accepted = bool(answer)
                except Exception as problem:  # noqa: BLE001  # re-raised by call.result()
                    failure = problem
            if guard.refusal and not accepted:
                failure = DeliveryFailed(guard.refusal)
            if failure is None:
                call.set_result(accepted)
            else:
                call.set_exception(failure)

        # a daemon thread, so that a hanging plugin does not block the exit of the process
        threading.Thread(target=notify, name=f"apprise {self._target}", daemon=True).start()
        return call


def _succeeded(call: Future[bool]) -> bool:
    return call.exception() is None and call.result()


def _kind(notification: Notification) -> str:
    if all(alert.state is AlertState.RESOLVED for alert in notification.alerts):
        return "success"
    firing = next(a for a in notification.alerts if a.state is AlertState.FIRING)
    return _KINDS.get(firing.severity, "warning")
