"""Receives webhooks of Zendesk and Intercom, with the functions of `rapport import webhooks`.

    RAPPORT_URL=… RAPPORT_TOKEN=… ZENDESK_SECRET=… INTERCOM_SECRET=… \
        uvicorn --factory helpdesk_webhook:from_environment

Point an Intercom webhook to `/intercom` (topics `conversation.user.created`, `….user.replied`,
`….admin.replied` and `….admin.closed`), and a Zendesk webhook to `/zendesk`: events of tickets, or
the trigger that `stream_app.importers.zendesk` describes. The command also receives Slack and
Twilio; take this as a start for a program of your own.
"""

import os
import sys
from collections.abc import Mapping

from starlette.applications import Starlette

from stream_app.client import AsyncRapportClient
from stream_app.importers import webhooks
from stream_app.importers.imported import Skipped
from stream_app.importers.intercom import events_of as intercom_events
from stream_app.importers.zendesk import events_of as zendesk_events

__all__ = ["create", "from_environment", "intercom_events", "zendesk_events"]


def report(skipped: Skipped) -> None:
    """Print what is not sent."""
    print(skipped, file=sys.stderr)


def create(rapport: AsyncRapportClient, secrets: Mapping[str, str]) -> Starlette:
    """The receiver; ``secrets`` of the desks that may send."""
    return webhooks.create(rapport, secrets, report)


def from_environment() -> Starlette:
    """The receiver with the settings of the environment."""
    rapport = AsyncRapportClient(os.environ["RAPPORT_URL"], os.environ["RAPPORT_TOKEN"])
    desks = ("zendesk", "intercom")
    return create(rapport, {name: os.environ.get(f"{name.upper()}_SECRET", "") for name in desks})
