"""Builds the process of ``rapport reviews ask``, and what tries questions on past sessions."""

from datetime import UTC, datetime

from prometheus_client import Counter

from stream_app import bootstrap
from stream_app.asking.asker import Asker
from stream_app.asking.chat_endpoint import ChatEndpoint
from stream_app.asking.rounds import AskingRounds
from stream_app.core.rules.scorecards import Criterion
from stream_app.errors import RapportError
from stream_app.settings import Settings
from stream_app.store.stream.repository import Store

EVERY = 30.0
"""Seconds between two looks for ended sessions."""
LONGEST_WAIT = 300.0
"""Seconds between two tries while the endpoint gives no answer, at most."""

TIMEOUT = 60.0
"""Seconds for one answer."""


def asking_store(settings: Settings) -> Store:
    """The database, with what masks text before it is sent."""
    opened = bootstrap.store(settings)
    opened.redactor = bootstrap.redactor(settings)
    opened.load_privacy(settings.redact)
    return opened


def asker(settings: Settings, store: Store) -> Asker:
    """Return the asker of one session.

    Raises:
        RapportError: no endpoint is set.
    """
    if settings.ask_endpoint is None or settings.ask_model is None:
        raise RapportError(
            "no text is sent to a language model: RAPPORT_ASK_ENDPOINT and RAPPORT_ASK_MODEL are "
            "not set (docs/reviews.md)"
        )
    key = settings.ask_key.get_secret_value() if settings.ask_key else None
    url, model = settings.ask_endpoint, settings.ask_model
    return Asker(store, ChatEndpoint(url, model, key, TIMEOUT))


def asking_rounds(settings: Settings, questions: list[Criterion], counter: Counter) -> AskingRounds:
    """Return the process that asks these questions about ended sessions.

    Raises:
        RapportError: no endpoint is set.
    """
    opened = asking_store(settings)
    return AskingRounds(
        opened,
        asker(settings, opened),
        questions,
        counter,
        lambda: datetime.now(UTC),
        EVERY,
        LONGEST_WAIT,
    )
