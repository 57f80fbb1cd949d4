"""Client library: sends turns to ``rapport web`` and reads scores, with retries and batches.

Start at ``sync_client.RapportClient`` or ``async_client.AsyncRapportClient``; ``events`` builds
what they send. It needs no worker, model or database.
"""

from stream_app.client.answers import EventResult, Session, TurnScores
from stream_app.client.async_client import AsyncRapportClient
from stream_app.client.batching import Batching
from stream_app.client.errors import ClientError, EventsNotSent, RequestRefused, ServiceUnavailable
from stream_app.client.events import (
    NewTurn,
    consent,
    delete,
    edit,
    end,
    outcome,
    questionnaire,
    turn,
)
from stream_app.client.requests import Retries
from stream_app.client.sync_client import RapportClient

__all__ = [
    "AsyncRapportClient",
    "Batching",
    "ClientError",
    "EventResult",
    "EventsNotSent",
    "NewTurn",
    "RapportClient",
    "RequestRefused",
    "Retries",
    "ServiceUnavailable",
    "Session",
    "TurnScores",
    "async_client",
    "consent",
    "delete",
    "edit",
    "end",
    "events",
    "outcome",
    "questionnaire",
    "sync_client",
    "turn",
]
