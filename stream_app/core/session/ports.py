"""Ports of the core and of the worker: a scorer and a session store.

============  ====================  ====================
port          adapter               fake
============  ====================  ====================
Scorer        ``inference.scorer``  ``tests.fakes``
SessionStore  ``store.repository``  ``tests.fake_store``
============  ====================  ====================

``tests/store/test_port.py`` is the conformance suite of stores, for the databases and the fake.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from stream_app.contracts.events import Role
from stream_app.contracts.scores import Expressed, Span
from stream_app.core.measures.empathy import EmpathyModel
from stream_app.core.measures.heads import Head
from stream_app.core.measures.intents import Hits
from stream_app.core.measures.outcomes import OutcomeModel
from stream_app.core.measures.window import ScoringRequest
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.origin import Origin
from stream_app.core.session.past import PastSession
from stream_app.core.session.session_state import Versioned


class Encoding(Struct, frozen=True):
    """The two vectors of a turn, with its rationales; see ``core.window.WindowTurn``.

    ``encoder``: see ``core.scoring_bundles.ScoringBundle``.
    """

    vectors: bytes
    rationales: dict[str, list[Span]]
    truncated: bool
    encoder: str = ""
    intents: Hits = {}
    tokens: bytes = b""
    parts: bytes = b""


class HeadScores(Struct, frozen=True):
    """The heads' outputs for one request; ``readings``: see ``core.window.WindowTurn``."""

    expressed: Expressed
    perceived: dict[str, float]
    client: dict[str, dict[str, float]]
    confidence: float
    abstained: list[str]
    readings: bytes = b""


class Scorer(Protocol):
    """Scores turns. The result for a turn never depends on the other turns in the call."""

    @property
    def bundle_id(self) -> str:
        """Name, version and profile of the model in use."""

    @property
    def window(self) -> tuple[int, int]:
        """Number of preceding and following turns that the model supports."""

    @property
    def heads(self) -> Sequence[Head]:
        """The bundle's heads."""

    @property
    def empathy(self) -> EmpathyModel | None:
        """The bundle's references for the empathy index."""

    @property
    def outcomes(self) -> Mapping[str, OutcomeModel]:
        """The bundle's outcome models by name."""

    def encode(self, texts: list[str], roles: list[Role] | None = None) -> list[Encoding]:
        """Encode each text once; with ``roles``, rationales only for heads of that role."""

    def score(self, requests: list[ScoringRequest]) -> list[HeadScores]:
        """Score encoded turns with their neighbours."""


TraceHeaders = tuple[tuple[str, bytes], ...]
"""Record headers that continue a trace (W3C Trace Context); empty when tracing is off."""


class Message(Struct, frozen=True, array_like=True):
    """One Kafka record to be sent; without a value it says that the key's session was erased."""

    topic: str
    key: bytes
    value: bytes | None
    type: str | None = None
    """Name of the value's schema, with ``:v2`` for version 2; the record is then a CloudEvent."""
    trace: TraceHeaders = ()


class OutboxEntry(Struct, frozen=True):
    """The messages of one batch that are not known to be published."""

    id: int
    messages: list[Message]


class LogPosition(Struct, frozen=True):
    """Up to where a consumer group has read a partition: ``next_offset`` comes next.

    ``stored``: the offset that the database is known to contain; None if it is not known.
    """

    consumer_group: str
    topic: str
    partition: int
    next_offset: int
    stored: int | None = None


class SessionStore(Protocol):
    """Keeps the states of sessions and commits batches. The calls block.

    Every write is idempotent. Any call may raise ``StoreUnavailable`` and may then be repeated.
    """

    def load_states(self, session_ids: Sequence[str], bundle: str) -> dict[str, Versioned]:
        """The stored states of these sessions, in this order; unknown ones are left out."""

    def find_erased(self, session_ids: Sequence[str]) -> set[str]:
        """Find the erased ones of some sessions: nothing of them is stored again."""

    def find_withdrawn(self, session_ids: Sequence[str]) -> dict[str, str | None]:
        """Find those whose consent was withdrawn, with the newest wording's version."""

    def find_begun(self, session_ids: Sequence[str]) -> dict[str, Origin]:
        """Find those that have a turn, with what their turns state."""

    def past_session(self, session_id: str) -> PastSession:
        """The stored turns of a session with their texts and scores; empty if there are none."""

    def erasures_since(self, moment: datetime) -> bool:
        """Whether any session was erased since then, by the clock of the erasing machine."""

    def idle_sessions(
        self, bundle: str, before: datetime, partitions: Sequence[int] | None, limit: int = 200
    ) -> dict[str, Versioned]:
        """Open sessions last heard of before ``before`` (``Versioned.seen_at``), oldest first."""

    def due_sessions(
        self,
        bundle: str,
        due: datetime,
        active_since: datetime,
        partitions: Sequence[int],
        limit: int = 200,
    ) -> dict[str, Versioned]:
        """Open sessions with a time rule due by ``due`` (``Versioned.wakes_at``), earliest first.

        Only live ones: heard of since ``active_since``, and with a turn of that time. A session
        with older turns is a recording.
        """

    def commit(
        self,
        result: BatchResult,
        messages: Sequence[Message] = (),
        positions: Sequence[LogPosition] = (),
        published: Sequence[int] = (),
    ) -> int | None:
        """Store a batch as a whole; returns the id of its outbox entry, None without messages.

        The versions in ``result.sessions`` are raised once it is stored. ``positions``: up to where
        the log is stored with it. ``published``: outbox entries that are deleted with it.

        Raises:
            StaleState: another worker has updated one of the sessions; nothing was stored.
            DatabaseWentBack: it contains less than a position's ``stored``; nothing was stored.
        """

    def check_positions(self, positions: Sequence[LogPosition]) -> None:
        """Raise ``DatabaseWentBack`` if it contains less than a position's ``stored``."""

    def dry_run(self, result: BatchResult, messages: Sequence[Message] = ()) -> None:
        """Write a batch and roll it back, to see whether the store takes one at all."""

    def outbox_ids(self, limit: int = 1000) -> list[int]:
        """Entries whose messages are not known to be published, oldest first."""

    def outbox_entries(self, outbox_ids: Sequence[int]) -> list[OutboxEntry]:
        """These entries, as far as they exist, oldest first."""

    def delete_outbox_entries(self, outbox_ids: Sequence[int]) -> None:
        """Delete entries whose messages are published."""

    def ping(self) -> None:
        """Raise ``StoreUnavailable`` if the store does not answer."""
