"""A webhook signed as Standard Webhooks asks: `webhook-id`, `-timestamp` and `-signature`."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Final

import httpx
from standardwebhooks import Webhook as Signer
from standardwebhooks.webhooks import EmptyWebhookSecretError

from stream_app.errors import RapportError
from stream_app.notifications.alertmanager import body
from stream_app.store.deliveries import DueAlert

BUSY: Final = (408, 425, 429)
"""Client errors that are about the moment, not about the message."""


def webhook_target(url: str) -> str:
    """The name of a webhook in the table of deliveries; its address may be a secret."""
    return f"webhook {httpx.URL(url).host[:60]} {hashlib.sha256(url.encode()).hexdigest()[:12]}"


class NotTaken(RapportError):
    """The target did not acknowledge; the delivery is to be tried again."""


class Refused(NotTaken):
    """The target answers and does not want this message; others it may take."""


class Webhook:
    """Posts alerts to one address. ``webhook-id`` is the alert's id, the same at every attempt."""

    def __init__(self, url: str, secret: str | None, external_url: str, timeout: float) -> None:
        """Open a client; ``timeout`` in seconds.

        Raises:
            RapportError: the secret is no base64.
        """
        try:
            self._signer = Signer(secret) if secret else None
        except (ValueError, EmptyWebhookSecretError):
            raise RapportError(
                "RAPPORT_WEBHOOK_SECRET is not base64 (with or without whsec_ before it)"
            ) from None
        self._url = url
        self._external_url = external_url
        self._client = httpx.Client(timeout=timeout, headers={"user-agent": "rapport"})

    def send(self, alert: DueAlert) -> None:
        """Deliver one alert; any status from 200 to 299 acknowledges it.

        Raises:
            NotTaken: it was not acknowledged; says why, in words that hold no secret.
            Refused: the same, and the reason is this message.
        """
        data = json.dumps(body(alert, self._external_url), ensure_ascii=False)
        now = datetime.now(UTC)
        headers = {
            "content-type": "application/json",
            "webhook-id": alert.alert_id,
            "webhook-timestamp": str(int(now.timestamp())),
        }
        if self._signer is not None:
            headers["webhook-signature"] = self._signer.sign(alert.alert_id, now, data)
        try:
            response = self._client.post(self._url, content=data.encode(), headers=headers)
        except httpx.HTTPError as problem:
            raise NotTaken(f"no answer ({type(problem).__name__})") from None
        if response.is_success:
            return
        refused = response.is_client_error and response.status_code not in BUSY
        raise (Refused if refused else NotTaken)(f"status {response.status_code}")
