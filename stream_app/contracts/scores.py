"""Outgoing messages: turn scores, session scores, alert transitions and dead letters.

The same structs are written by ``rapport score`` as JSON lines, published on the score topics and
converted to rows by the store. Probabilities are in [0, 1], levels in {0, 1, 2}.
"""

from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from stream_app.contracts.events import Role
from stream_app.contracts.framing import unframed

Probability = Annotated[float, Meta(ge=0.0, le=1.0)]
Distribution = dict[str, Probability]
Span = tuple[int, int]
Total = Annotated[int, Meta(ge=0, le=6)]

SCALE: Final = 10_000
"""Probabilities are rounded to ten-thousandths, within five of which they are reproducible."""
MECHANISMS: Final = ("emotional_reactions", "interpretations", "explorations")
"""EPITOME's three communication mechanisms (Sharma et al. 2020, section 3)."""


class Stage(Enum):
    """``provisional``: scored without following turns; ``final``: with its complete window."""

    PROVISIONAL = "provisional"
    FINAL = "final"


class SessionStatus(Enum):
    """``idle``: no turn for the idle timeout; a new turn reopens the session."""

    OPEN = "open"
    IDLE = "idle"
    CLOSED = "closed"


class Unscored(Enum):
    """Why a stored turn has no score. ``language``: no bundle in force covers its language."""

    LANGUAGE = "language"


class AlertState(Enum):
    """The states of an alert rule for one session."""

    INACTIVE = "inactive"
    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class Standing(Enum):
    """The threshold of a manual that a measure reaches; ``below``: neither."""

    BELOW = "below"
    FAIR = "fair"
    GOOD = "good"


class Severity(Enum):
    """Importance of a rule's alert, as set by the rule's author."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Level(Struct, frozen=True):
    """Level of one mechanism (0 none, 1 weak, 2 strong) and its rationale spans."""

    level: Annotated[int, Meta(ge=0, le=2)]
    probabilities: list[Probability]
    rationale: Annotated[
        list[Span], Meta(description="[start, end) in Unicode code points of the original text")
    ] = []


TOTAL: Final = "empathy_total"
"""The sum of the mechanisms' levels; stands among the expressed heads, and is none."""


class Expressed(dict[str, Level | Distribution | int]):
    """Expressed empathy by head, and the total of EPITOME's levels.

    The bundle's manifest says which heads there are. A head of levels has a ``Level``, any other
    the probability of each label.

    >>> expressed = Expressed(strategy={"question": 0.9, "others": 0.1}, empathy_total=0)
    >>> expressed.distribution("strategy"), expressed.level("explorations"), expressed.total
    ({'question': 0.9, 'others': 0.1}, None, 0)
    """

    __slots__ = ()

    def level(self, head: str) -> Level | None:
        """The level of a head; None where the bundle lacks such a head."""
        found = self.get(head)
        return found if isinstance(found, Level) else None

    def distribution(self, head: str) -> Distribution | None:
        """The probability of each label; None where the bundle lacks such a head."""
        found = self.get(head)
        return found if isinstance(found, dict) else None

    @property
    def total(self) -> int | None:
        """The sum of the mechanisms' levels, 0-6; None without any of them."""
        found = self.get(TOTAL)
        return found if isinstance(found, int) else None

    @property
    def levels(self) -> dict[str, Level]:
        """All heads that have levels."""
        return {name: found for name, found in self.items() if isinstance(found, Level)}


class TurnScore(Struct, frozen=True, tag_field="type", tag="turn_score", kw_only=True):
    """The score of one turn; identified by (session_id, seq, stage, bundle)."""

    session_id: str
    seq: int
    stage: Stage
    bundle: str
    role: Role
    occurred_at: datetime
    late: bool
    truncated: Annotated[bool, Meta(description="The text was longer than the encoder's input")]
    expressed: Expressed
    perceived: Distribution
    client: dict[str, Distribution]
    confidence: Annotated[
        float, Meta(ge=0, le=1, description="Mean top probability of the applicable heads")
    ]
    abstained: Annotated[list[str], Meta(description="Heads whose confidence is too low to use")]
    low_empathy_risk: Annotated[
        Probability | None, Meta(description="Session risk after this counsellor turn")
    ] = None
    intents: Annotated[
        Distribution,
        Meta(description="Scores of the intents that the turn has, by name (docs/intents.md)"),
    ] = {}


class MechanismSummary(Struct, frozen=True):
    """One mechanism over the counsellor turns of a session."""

    mean: Annotated[float, Meta(ge=0, le=2, description="Mean expected level")]
    recent_mean: Annotated[
        float, Meta(ge=0, le=2, description="Mean expected level of the last five")
    ]
    share: Annotated[Probability, Meta(description="Expected share of turns with a level above 0")]


class MitiMeasure(Struct, frozen=True):
    """One measure of the MITI, with its manual's thresholds."""

    value: Annotated[float | None, Meta(description="Null: denominator too small")]
    fair: float
    good: float
    manual: Annotated[str, Meta(description="The manual that defines the thresholds")]
    standing: Annotated[Standing | None, Meta(description="Null: too early to determine")]


class MitiSummary(Struct, frozen=True):
    """MITI behaviour counts of motivational interviewing, approximated by classifiers.

    Expected counts over volleys (the counsellor's turns between two client turns). The manual's
    global ratings are not computed.
    """

    turns: Annotated[int, Meta(ge=0, description="Number of counted counsellor turns")]
    volleys: Annotated[
        int, Meta(ge=0, description="Runs of counsellor turns between two client turns")
    ]
    counts: Annotated[
        dict[str, float], Meta(description="Expected number of volleys with a code, by code")
    ]
    measures: Annotated[
        dict[str, MitiMeasure],
        Meta(
            description="reflection_to_question, complex_reflection_share and open_question_share"
        ),
    ]
    mi_adherent: Annotated[
        float | None, Meta(description="Expected number; seeking collaboration alone")
    ]
    mi_non_adherent: Annotated[float | None, Meta(description="Expected number; persuade alone")]
    not_counted: Annotated[list[str], Meta(description="Codes that no classifier predicts")]


class SessionMeasures(Struct, frozen=True, kw_only=True):
    """Means, shares and ratios of one session so far; None without a denominator."""

    counsellor_turns: Annotated[int, Meta(ge=0)]
    mechanisms: Annotated[dict[str, MechanismSummary], Meta(description="By EPITOME mechanism")]
    empathy_total_mean: (
        Annotated[float, Meta(ge=0, le=6, description="Mean sum of the three mechanisms' levels")]
        | None
    )
    talk_share: Annotated[Probability | None, Meta(description="Counsellor's share of the words")]
    reflection_to_question: (
        Annotated[float, Meta(ge=0, description="Reflections per question")] | None
    )
    complex_reflection_share: Annotated[
        Probability | None, Meta(description="Share of complex reflections among reflections")
    ]
    open_question_share: Annotated[
        Probability | None, Meta(description="Share of open questions among questions")
    ]


class SessionScore(
    SessionMeasures, frozen=True, tag_field="type", tag="session_score", kw_only=True
):
    """Aggregates of one session so far, identified by (session_id, bundle)."""

    session_id: str
    bundle: str
    status: SessionStatus
    started_at: datetime | None
    last_activity_at: datetime | None
    turns: Annotated[int, Meta(ge=0, description="Number of scored turns")]
    late_turns: Annotated[int, Meta(ge=0, description="Turns received out of order, too late")]
    withheld_turns: Annotated[int, Meta(ge=0, description="Turns not scored for lack of consent")]
    unscored_turns: Annotated[
        int, Meta(ge=0, description="Stored turns in a language that no bundle in force covers")
    ] = 0
    low_empathy_risk: Annotated[
        Probability | None,
        Meta(
            description="Probability that the recent empathy index lies below the tenth percentile "
            "of the reference; after the last counsellor turn, or from final scores after the end"
        ),
    ]
    empathy_index: Annotated[
        Probability | None,
        Meta(description="Empathy of the counsellor's answers, weighted by opportunity"),
    ]
    empathy_interval: Annotated[
        tuple[Probability, Probability] | None, Meta(description="95 % interval of the index")
    ]
    empathy_percentile: (
        Annotated[
            float,
            Meta(ge=0, le=100, description="Share of the reference's sessions with a lower index"),
        ]
        | None
    )
    answered_share: Annotated[
        Probability | None,
        Meta(description="Share of the empathic opportunities that got an empathic answer"),
    ]
    missed_opportunities: Annotated[
        list[int], Meta(description="seq of the client turns without one; the latest 50")
    ]
    outcome_risks: Annotated[
        Distribution, Meta(description="Predicted outcomes by name, if the domain has a model")
    ]
    risk_by_turn: Annotated[
        list[tuple[int, float]],
        Meta(description="[seq, risk]; on the topic, only points since the previous message"),
    ]
    miti: Annotated[
        MitiSummary | None,
        Meta(description="Null unless the session follows motivational interviewing"),
    ]


class Alert(Struct, frozen=True, tag_field="type", tag="alert", kw_only=True):
    """One transition of an alert rule; resent messages have the same ``alert_id``."""

    alert_id: str
    episode_id: Annotated[
        str, Meta(description="Identifies one alert: all transitions of one episode")
    ]
    rule: str
    severity: Severity
    labels: dict[str, str]
    session_id: str
    bundle: str
    state: AlertState
    previous: AlertState
    episode: Annotated[int, Meta(ge=1, description="Number of episodes of the rule so far")]
    seq: Annotated[
        int | None,
        Meta(
            description="The turn that caused it, or from which a time was counted; null at the end"
        ),
    ]
    occurred_at: Annotated[datetime, Meta(description="In event time")]
    reason: Annotated[str, Meta(description="The reason in words and numbers; no transcript text")]
    value: float | None
    threshold: float | None
    values: Annotated[dict[str, float], Meta(description="Values of the rule's variables")]
    turns: Annotated[
        list[int],
        Meta(
            description="The turns to read: the client's turns that the reason counts, if it "
            "counts any; else those after which the condition held in this episode; at most 20"
        ),
    ]
    rules_digest: Annotated[str, Meta(description="Digest of the file of rules in force")]
    protocol: Annotated[
        str | None,
        Meta(description="The rule's text on what to do, written by the operator; no assessment"),
    ] = None


class AlertAction(Struct, frozen=True, tag_field="type", tag="alert_action", kw_only=True):
    """A person's action on an alert, without their note."""

    action_id: str
    episode_id: Annotated[str, Meta(description="The alert, as in its transitions")]
    session_id: str
    kind: Annotated[str, Meta(description="For example acknowledge, resolve or note")]
    reason: Annotated[str | None, Meta(description="The person's judgement of the alert")]
    person: Annotated[str, Meta(description="Sign-in name of the person")]
    at: Annotated[str, Meta(description="UTC, ISO 8601")]
    state: Annotated[str, Meta(description="The alert's state afterwards")]


DEAD_LETTER_HEADER = "rapport-dead-letter"


class DeadLetter(Struct, frozen=True, tag_field="type", tag="dead_letter", kw_only=True):
    """Why an event was dead-lettered.

    Sent as the header ``rapport-dead-letter`` of a record on ``dialogue.dead-letters`` whose value
    is the original bytes (only the first 64 KiB if the brokers refuse more).
    """

    dead_letter_id: Annotated[
        str,
        Meta(
            description="topic:partition:offset:milliseconds of the original; "
            "without milliseconds if its time is unknown"
        ),
    ]
    reason: Annotated[str, Meta(description="Category for metrics")]
    detail: Annotated[str, Meta(description="Description; never quotes dialogue")]
    topic: str
    partition: int
    offset: int
    size: Annotated[int, Meta(ge=0, description="Size of the original in bytes")]


Output = TurnScore | SessionScore | Alert

_encoder = msgspec.json.Encoder(order="deterministic")


def encode(message: Output | AlertAction | DeadLetter) -> bytes:
    """Encode one message as JSON."""
    return _encoder.encode(message)


def decode(raw: bytes) -> Output:
    """A message from JSON bytes, which may be framed (``contracts.framing``).

    Raises:
        msgspec.DecodeError: it is none.
    """
    return _decoder.decode(unframed(raw))


class _Parts(Struct):
    """Heads by what they look like; a struct, as msgspec prepares a struct's types once."""

    levels: dict[str, Level]
    distributions: dict[str, Distribution]
    total: Total | None


def decode_expressed(kind: type, found: Any) -> Expressed:
    """Sort the heads: msgspec cannot choose between a struct and a dict. A ``dec_hook``."""
    if kind is not Expressed:
        raise TypeError(f"no way to read {kind.__name__}")
    if not isinstance(found, dict):
        raise msgspec.ValidationError(f"Expected `object`, got `{type(found).__name__}`")
    levels, distributions = {}, {}
    for name, part in found.items():
        if isinstance(part, dict) and isinstance(part.get("probabilities"), list):
            levels[name] = part
        elif name != TOTAL:
            distributions[name] = part
    given = {"levels": levels, "distributions": distributions, "total": found.get(TOTAL)}
    parts = msgspec.convert(given, _Parts)
    expressed = Expressed(parts.levels)
    expressed.update(parts.distributions)
    if parts.total is not None:
        expressed[TOTAL] = parts.total
    return expressed


_decoder: msgspec.json.Decoder[Output] = msgspec.json.Decoder(Output, dec_hook=decode_expressed)
