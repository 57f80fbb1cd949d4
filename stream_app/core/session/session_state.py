"""The stored state of a session; ``core.window.WindowTurn`` says what it keeps of turns."""

import sys
import zlib
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct, field, structs

from stream_app.core.measures.aggregates import Aggregates, shared_levels
from stream_app.core.measures.baselines import Pinned
from stream_app.core.measures.exchanges import Exchanges
from stream_app.core.measures.miti import MitiCounts
from stream_app.core.measures.turn_evidence import Evidence, parts, shared_names
from stream_app.core.measures.voices import Voices
from stream_app.core.measures.watch import Facts, Watch
from stream_app.core.measures.window import WindowState
from stream_app.core.rules.alerts import AlertStatus
from stream_app.core.session import earlier_layouts

EARLIER_RULE: Final = "low-empathy-risk"
ZLIB: Final = b"\x78"
"""The first byte of zlib's format: other first bytes are those of earlier layouts."""
LEVEL: Final = 3
"""zlib's level of compression: higher levels take longer and save a fiftieth."""


class BundleChoice(Struct, frozen=True, array_like=True):
    """A bundle other than the default one: its id, its digest, and its encoder if it has its own.

    See ``core.scoring_bundles``.
    """

    bundle: str
    digest: str
    encoder: str = ""


class Edits(Struct, array_like=True):
    """The time of a turn's latest edit, and digests of its earlier texts."""

    at: datetime
    earlier: list[int]


class SessionState(Struct, array_like=True):
    """Everything needed to continue a session; stored as ``pack`` encodes it.

    New fields go to the end and have a default, so that stored states still load; so do those of
    structs in it.

    ``consent``: the latest stated one, None before the first. ``withdrawn``: since
    ``withdrawn_at``; see ``core.consent``. ``consent_version``: the newest version of the wording
    in a record. ``consent_records``: checksums of the latest ones, so that they are applied once.
    ``analysed``: a turn was accepted. ``has_counsellor``: a counsellor's turn was.
    ``withheld_outcomes``: checksums of withheld outcomes, so that they stay withheld when re-read.
    ``alerts``: by rule, for rules that have started at least once. ``alert``: of the only rule of
    an earlier release; ``unpack`` moves it to ``alerts``. ``slots``: the stored rows of the
    window's turns by seq (see ``store.windows``); empty in memory. ``bundle``: the default bundle
    of the installation. ``chosen``: the bundle that scores the session, None for the default one.
    ``undecided``: no turn has had a language with a bundle yet. ``unscored_turns``: stored without
    a score. ``early_ends``: checksums of ends that came before the first turn, without effect.
    ``voices``: what each of several counsellors answered; ``risk`` is of the one who speaks.
    ``clients``: digests of the clients' ids.
    ``edits``: of the turns that were edited, by seq. ``removed``: numbers of deleted turns.
    ``turn_ids``: numbers of the latest turns that have an id, by the id's digest.
    ``languages``: how many turns were clearly in which language.
    """

    session_id: str
    bundle: str
    closed: bool = False
    consent: bool | None = None
    withdrawn: bool = False
    withdrawn_at: datetime | None = None
    consent_version: str | None = None
    consent_records: list[int] = field(default_factory=list)
    analysed: bool = False
    has_counsellor: bool = False
    domain: str | None = None
    approach: str | None = None
    channel: str | None = None
    team: str | None = None
    lang: str | None = None
    started_at: datetime | None = None
    last_activity_at: datetime | None = None
    ended_at: datetime | None = None
    end_reason: str | None = None
    withheld_turns: int = 0
    withheld_outcomes: list[int] = field(default_factory=list)
    window: WindowState = field(default_factory=WindowState)
    aggregates: Aggregates = field(default_factory=Aggregates)
    exchanges: Exchanges = field(default_factory=Exchanges)
    watch: Watch = field(default_factory=Watch)
    alerts: dict[str, AlertStatus] = field(default_factory=dict)
    alert: AlertStatus | None = None
    baselines: Pinned = Pinned()
    risk: float | None = None
    outcomes: dict[str, float] = field(default_factory=dict)
    miti: MitiCounts | None = None
    slots: dict[int, int] = field(default_factory=dict)
    chosen: BundleChoice | None = None
    undecided: bool = False
    unscored_turns: int = 0
    early_ends: list[int] = field(default_factory=list)
    voices: Voices = field(default_factory=Voices)
    clients: list[int] = field(default_factory=list)
    edits: dict[int, Edits] = field(default_factory=dict)
    removed: list[int] = field(default_factory=list)
    turn_ids: dict[int, int] = field(default_factory=dict)
    languages: dict[str, int] = field(default_factory=dict)

    @property
    def facts(self) -> Facts:
        """Return the facts about the session as a whole so far."""
        return Facts(self.domain, self.channel, self.team, self.baselines, self.approach)

    @property
    def own_exchanges(self) -> Exchanges:
        """The exchanges of the counsellor who speaks."""
        voice = self.voices.speaking
        return self.exchanges if voice is None else voice.exchanges

    @property
    def own_turns(self) -> int:
        """The number of turns of the counsellor who speaks."""
        voice = self.voices.speaking
        return self.aggregates.counsellor.turns if voice is None else voice.turns

    @property
    def wake_at(self) -> datetime | None:
        """When the next timed rule is due, in event time, or None.

        Also None while turns wait for a missing one, which may have been the answer.
        """
        if self.closed or self.window.waiting:
            return None
        due = [status.due_at for status in self.alerts.values() if status.due_at is not None]
        return min(due, default=None)


class Versioned(Struct):
    """A state and its metadata in the store; ``version`` 0 is not stored yet.

    ``partition``: of the topic with the session's events. ``slots``: the stored rows of the
    window's turns, by seq. ``speakers``: speakers that are already stored. ``seen_at``: when its
    latest event was appended, by a clock that no producer sets. ``key``: the session's data key,
    empty until one is stored.
    """

    state: SessionState
    version: int = 0
    partition: int = 0
    slots: dict[int, int] = field(default_factory=dict)
    speakers: set[tuple[str, str]] = field(default_factory=set)
    seen_at: datetime | None = None
    key: bytes = b""

    @property
    def wakes_at(self) -> datetime | None:
        """When the next time rule is due by the clock of ``seen_at``; None if none is.

        As long after ``seen_at`` as, in the session's own time, after its latest turn.
        """
        own, due = self.state.last_activity_at, self.state.wake_at
        if own is None or due is None or self.seen_at is None:
            return None
        try:
            return self.seen_at + (due - own)
        except OverflowError:
            return None


def _plain(value: Any) -> Any:
    """Evidence as the dictionary that it stands for."""
    if isinstance(value, Evidence):
        return dict(zip(value.names, value.numbers(), strict=True))
    raise TypeError(f"a state has no field of the type {type(value).__name__}")


_encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
_decoder = msgspec.msgpack.Decoder(SessionState)


def pack(state: SessionState) -> bytes:
    """Encode a state as MessagePack, compressed with zlib."""
    return zlib.compress(_encoder.encode(state), LEVEL)


def unpack(raw: bytes, base: bytes = b"") -> SessionState:
    """Decode a state; ``base``: the row that a state of before needs (``core.earlier_layouts``).

    Raises:
        msgspec.DecodeError: the bytes do not match the layout or the base.
    """
    if raw.startswith(ZLIB):
        try:
            state = _decoder.decode(zlib.decompress(raw))
        except zlib.error:
            raise msgspec.DecodeError("a compressed state is damaged") from None
    elif earlier_layouts.is_map(raw):
        state = _renamed_alert(earlier_layouts.from_map(raw, SessionState))
    else:
        state, evidence = earlier_layouts.state(raw, base, SessionState)
        evidence.give_to(state.aggregates)
    _share(state.aggregates)
    return state


def _share(aggregates: Aggregates) -> None:
    """Share with other open sessions what is the same: some seventy names for each latest turn."""
    for totals in (aggregates.settled, aggregates.client_settled):
        names = shared_names(tuple(totals.evidence))
        totals.evidence = dict(zip(names, totals.evidence.values(), strict=True))
    for turns in (aggregates.latest, aggregates.client_latest):
        for place, turn in enumerate(turns):
            turns[place] = structs.replace(
                turn,
                evidence=Evidence(*parts(turn.evidence)),
                levels=shared_levels(turn.levels),
                question=_interned(turn.question),
                reflection=_interned(turn.reflection),
            )


def _interned(label: str | None) -> str | None:
    return sys.intern(label) if label is not None else None


def _renamed_alert(state: SessionState) -> SessionState:
    """Move the only alert of an early release to the alerts by rule."""
    if state.alert is not None:
        if state.alert.episode:
            state.alerts.setdefault(EARLIER_RULE, state.alert)
        state.alert = None
    return state
