"""Events out: turn scores, session scores, alert transitions and dead letters.

The same structs are written by ``rapport score`` as JSON lines, published on the score topics and
turned into rows by the store. Probabilities lie in [0, 1], levels in {0, 1, 2}.
"""

from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from stream_app.contracts.events import Role

Probability = Annotated[float, Meta(ge=0.0, le=1.0)]
Distribution = dict[str, Probability]
Span = tuple[int, int]
Total = Annotated[int, Meta(ge=0, le=6)]

MECHANISMS: Final = ("emotional_reactions", "interpretations", "explorations")
"""EPITOME's three communication mechanisms (Sharma et al. 2020, section 3)."""


class Stage(Enum):
    """``provisional``: only what precedes the turn is known; ``final``: its window is complete."""

    PROVISIONAL = "provisional"
    FINAL = "final"


class SessionStatus(Enum):
    """``idle``: no turn for the idle timeout; a new turn opens the session again."""

    OPEN = "open"
    IDLE = "idle"
    CLOSED = "closed"


class AlertState(Enum):
    """The states of an alert rule for one session."""

    INACTIVE = "inactive"
    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class Standing(Enum):
    """Which of a manual's thresholds a measure reaches; ``below``: neither."""

    BELOW = "below"
    FAIR = "fair"
    GOOD = "good"


class Severity(Enum):
    """How much a rule's alert matters, in the words of the rule's author."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Level(Struct, frozen=True):
    """Level of one mechanism: 0 none, 1 weak, 2 strong, with the words that carry it."""

    level: Annotated[int, Meta(ge=0, le=2)]
    probabilities: list[Probability]
    rationale: Annotated[
        list[Span], Meta(description="[start, end) in characters of the original text")
    ] = []


TOTAL: Final = "empathy_total"
"""The sum of the mechanisms' levels; stands among the expressed heads, and is none."""


class Expressed(dict[str, Level | Distribution | int]):
    """What the counsellor expressed, by head, and the total of EPITOME's levels.

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
    truncated: Annotated[bool, Meta(description="The text was longer than the encoder reads")]
    expressed: Expressed
    perceived: Distribution
    client: dict[str, Distribution]
    confidence: Annotated[
        float, Meta(ge=0, le=1, description="Mean top probability of the heads that apply")
    ]
    abstained: Annotated[list[str], Meta(description="Heads whose confidence is too low to use")]
    low_empathy_risk: Annotated[
        Probability | None, Meta(description="Session risk after this counsellor turn")
    ] = None


class MechanismSummary(Struct, frozen=True):
    """One mechanism over the counsellor turns of a session."""

    mean: Annotated[float, Meta(ge=0, le=2, description="Mean expected level")]
    recent_mean: Annotated[
        float, Meta(ge=0, le=2, description="Mean expected level of the last five")
    ]
    share: Annotated[Probability, Meta(description="Expected share of turns with a level above 0")]


class MitiMeasure(Struct, frozen=True):
    """One measure of the MITI with the thresholds of the manual that has them."""

    value: Annotated[float | None, Meta(description="Null: too little to divide by")]
    fair: float
    good: float
    manual: Annotated[str, Meta(description="The manual that states the thresholds")]
    standing: Annotated[Standing | None, Meta(description="Null: too early to say")]


class MitiSummary(Struct, frozen=True):
    """Motivational interviewing by the MITI's codes, as classifiers would count them.

    Expected counts over volleys (the counsellor's turns between two of the client's). The manual's
    global ratings are not computed.
    """

    turns: Annotated[int, Meta(description="Counsellor turns that were counted")]
    volleys: int
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
    not_counted: Annotated[list[str], Meta(description="Codes that no classifier tells")]


class SessionScore(Struct, frozen=True, tag_field="type", tag="session_score", kw_only=True):
    """Aggregates of one session so far; identified by (session_id, bundle)."""

    session_id: str
    bundle: str
    status: SessionStatus
    started_at: datetime | None
    last_activity_at: datetime | None
    turns: int
    counsellor_turns: int
    late_turns: int
    withheld_turns: Annotated[int, Meta(description="Turns not scored for want of consent")]
    low_empathy_risk: Annotated[
        Probability | None,
        Meta(
            description="Probability that the recent empathy index lies below the tenth percentile "
            "of the reference; after the last counsellor turn, once ended with all scores final"
        ),
    ]
    empathy_index: Annotated[
        Probability | None,
        Meta(description="How empathically the client's turns were answered, by opportunity"),
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
        list[int], Meta(description="seq of the client turns that got none; the latest 50")
    ]
    outcome_risks: Annotated[
        Distribution, Meta(description="Predicted outcomes by name; where the domain has a model")
    ]
    risk_by_turn: Annotated[
        list[tuple[int, float]],
        Meta(description="[seq, risk]; on the topic only points since the previous message"),
    ]
    mechanisms: dict[str, MechanismSummary]
    empathy_total_mean: Annotated[float, Meta(ge=0, le=6)] | None
    talk_share: Annotated[Probability | None, Meta(description="Counsellor's share of the words")]
    reflection_to_question: float | None
    complex_reflection_share: Probability | None
    open_question_share: Probability | None
    miti: Annotated[
        MitiSummary | None, Meta(description="Null unless it follows motivational interviewing")
    ]


class Alert(Struct, frozen=True, tag_field="type", tag="alert", kw_only=True):
    """One transition of an alert rule; ``alert_id`` is the same whenever it is sent again."""

    alert_id: str
    episode_id: Annotated[
        str, Meta(description="The alert as people see it: all transitions of one episode")
    ]
    rule: str
    severity: Severity
    labels: dict[str, str]
    session_id: str
    bundle: str
    state: AlertState
    previous: AlertState
    episode: Annotated[int, Meta(ge=1, description="How often the rule left inactive so far")]
    seq: Annotated[
        int | None,
        Meta(description="The turn that caused it, or that a time ran from; null at the end"),
    ]
    occurred_at: Annotated[datetime, Meta(description="In event time")]
    reason: Annotated[str, Meta(description="Why, in words and numbers; no transcript text")]
    value: float | None
    threshold: float | None
    values: Annotated[
        dict[str, float], Meta(description="The numbers that the rule looked at, by variable")
    ]
    turns: Annotated[
        list[int],
        Meta(description="The turns after which the condition held in this episode; at most 20"),
    ]
    rules_digest: Annotated[str, Meta(description="Digest of the file of rules in force")]


DEAD_LETTER_HEADER = "rapport-dead-letter"


class DeadLetter(Struct, frozen=True, tag_field="type", tag="dead_letter", kw_only=True):
    """Why an event was set aside.

    Travels as the header ``rapport-dead-letter`` of a record on ``dialogue.dead-letters`` whose
    value holds the original bytes, unchanged; only their first 64 KiB if the brokers refuse more.
    """

    dead_letter_id: Annotated[str, Meta(description="topic:partition:offset of the original")]
    reason: Annotated[str, Meta(description="A word for counting")]
    detail: Annotated[str, Meta(description="What was wrong; quotes no dialogue")]
    topic: str
    partition: int
    offset: int
    size: Annotated[int, Meta(ge=0, description="Bytes of the original")]


Output = TurnScore | SessionScore | Alert

_encoder = msgspec.json.Encoder(order="deterministic")


def encode(message: Output | DeadLetter) -> bytes:
    """One message as JSON bytes."""
    return _encoder.encode(message)


def decode(raw: bytes) -> Output:
    """A message from JSON bytes.

    Raises:
        msgspec.DecodeError: it is none.
    """
    return _decoder.decode(raw)


class _Parts(Struct):
    """Heads by what they look like; a struct, as msgspec prepares a struct's types once."""

    levels: dict[str, Level]
    distributions: dict[str, Distribution]
    total: Total | None


def _expressed(kind: type, found: Any) -> Expressed:
    """Sort the heads: msgspec cannot choose between a struct and a dict."""
    if kind is not Expressed:
        raise NotImplementedError(f"no way to read {kind.__name__}")
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


_decoder: msgspec.json.Decoder[Output] = msgspec.json.Decoder(Output, dec_hook=_expressed)
