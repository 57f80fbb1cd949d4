"""A webhook channel, signed according to Standard Webhooks."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import httpx
from standardwebhooks import Webhook as Signer
from standardwebhooks.webhooks import EmptyWebhookSecretError

from stream_app.errors import RapportError
from stream_app.notifications.alertmanager import body
from stream_app.notifications.connection_guard import AllowedTargets, guarded
from stream_app.notifications.notification import (
    DeliveryFailed,
    DeliveryRejected,
    DeliveryUnconfirmed,
    Notification,
)

RETRY_STATUSES: Final = (408, 425, 429)
"""Client errors that are temporary; others reject the message."""
_NEVER_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.InvalidURL,
    httpx.UnsupportedProtocol,
)


def signer(secret: str) -> Signer:
    """Create a signer with this secret.

    Raises:
        RapportError: the secret is not base64.
    """
    try:
        return Signer(secret)
    except (ValueError, EmptyWebhookSecretError):
        raise RapportError("not base64 (with or without the prefix whsec_)") from None


class Webhook:
    """Posts to one address; ``webhook-id`` is the notification's id, the same in every attempt."""

    def __init__(
        self,
        target: str,
        url: str,
        secret: str | None,
        external_url: str,
        timeout: float,
        allowed: AllowedTargets,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Open a client; ``timeout`` in seconds, ``allowed``: addresses that are not public."""
        self._target = target
        self._signer = signer(secret) if secret else None
        self._url = url
        self._external_url = external_url
        self._now = now
        self._allowed = allowed
        self._client = httpx.Client(
            timeout=timeout, headers={"user-agent": "rapport"}, follow_redirects=False
        )

    def send(self, notification: Notification) -> None:
        """Post the notification; a status from 200 to 299 confirms it. See ``Channel``."""
        data = json.dumps(body(notification, self._target, self._external_url), ensure_ascii=False)
        now = self._now()
        headers = {
            "content-type": "application/json",
            "webhook-id": notification.notification_id,
            "webhook-timestamp": str(int(now.timestamp())),
        }
        if self._signer is not None:
            headers["webhook-signature"] = self._signer.sign(
                notification.notification_id, now, data
            )
        with guarded(self._allowed) as guard:
            try:
                response = self._client.post(self._url, content=data.encode(), headers=headers)
            except _NEVER_SENT as problem:
                reason = guard.refusal or f"no connection ({type(problem).__name__})"
                raise DeliveryFailed(reason) from None
            except httpx.HTTPError as problem:
                raise DeliveryUnconfirmed(f"no answer ({type(problem).__name__})") from None
        if response.is_success:
            return
        rejected = response.is_client_error and response.status_code not in RETRY_STATUSES
        failure = DeliveryRejected if rejected else DeliveryFailed
        asked = retry_after(response.headers.get("retry-after", ""), now)
        raise failure(f"status {response.status_code}", asked)


def retry_after(header: str, now: datetime) -> float:
    """Seconds to wait by a ``Retry-After`` of seconds or a date; 0 without a valid one.

    >>> retry_after("40", datetime.now(UTC))
    40.0
    >>> retry_after("Fri, 02 Jan 2026 10:00:30 GMT", datetime(2026, 1, 2, 10, tzinfo=UTC))
    30.0
    """
    if re.fullmatch(r"[0-9]+", header.strip()):
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return 0.0
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())
