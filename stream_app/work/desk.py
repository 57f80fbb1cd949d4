"""What work needs of the process in which it is done."""

import threading
from dataclasses import dataclass, field

from stream_app.core.rules.scorecards import Scorecards
from stream_app.settings import Settings
from stream_app.store.accounts.people import People
from stream_app.store.alerts.rule_sources import RuleSource
from stream_app.store.stream.repository import Store
from stream_app.work.access_log import AccessLog
from stream_app.work.known_intents import KnownIntents


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Opened once by a process, and passed to each piece of work.

    ``read_store``: the database that analyses read, which may be a replica. ``trial_running``: held
    by a trial of alert rules.
    """

    settings: Settings
    store: Store
    read_store: Store
    people: People
    accesses: AccessLog
    scorecards: Scorecards
    rules: RuleSource
    intents: KnownIntents = field(default_factory=KnownIntents)
    trial_running: threading.Lock = field(default_factory=threading.Lock)
