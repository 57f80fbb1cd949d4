"""Incoming events: what producers send to ``dialogue.turns`` (key = ``session_id``).

``decode`` is the only entry point. It takes the bytes of a Kafka record (bare JSON, or the data of
a CloudEvent in binary mode) and returns one of the event structs, or raises ``ContractError``
with a reason that never quotes dialogue.
"""

import re
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from stream_app.contracts import surrogates
from stream_app.contracts.json_bytes import without_mark
from stream_app.contracts.questionnaires import Instrument, fault
from stream_app.errors import ContractError

MAX_EVENT_BYTES: Final = 64 * 1024
MAX_ID_CHARS: Final = 200
MAX_VERSION_CHARS: Final = 50


class Role(Enum):
    """The speaker's role. The wire also accepts the aliases in ``ROLE_ALIASES``.

    Turns of clients and counsellors are scored. Those of ``SYSTEM`` (bots, templates, notices) and
    ``SUPERVISOR`` (whispered to the counsellor, unseen by the client) are *asides*: stored and
    shown to staff, and left out of every score, window, exchange, alert and analysis.
    """

    CLIENT = "client"
    COUNSELLOR = "counsellor"
    SYSTEM = "system"
    SUPERVISOR = "supervisor"

    @property
    def is_scored(self) -> bool:
        """Whether turns of this role are scored; the others are asides."""
        return self in SCORED_ROLES

    @classmethod
    def _missing_(cls, value: object) -> "Role | None":
        return ROLE_ALIASES.get(spelt(value))


SCORED_ROLES: Final = (Role.CLIENT, Role.COUNSELLOR)
ROLE_ALIASES: Final = {
    "client": Role.CLIENT,
    "seeker": Role.CLIENT,
    "patient": Role.CLIENT,
    "customer": Role.CLIENT,
    "user": Role.CLIENT,
    "counsellor": Role.COUNSELLOR,
    "counselor": Role.COUNSELLOR,
    "supporter": Role.COUNSELLOR,
    "therapist": Role.COUNSELLOR,
    "agent": Role.COUNSELLOR,
    "listener": Role.COUNSELLOR,
    "system": Role.SYSTEM,
    "bot": Role.SYSTEM,
    "supervisor": Role.SUPERVISOR,
}


def spelt(value: object) -> str:
    """A name in small letters, its words joined by hyphens; empty if it is none.

    >>> spelt(" Peer_Support "), spelt("customer  service"), spelt(3)
    ('peer-support', 'customer-service', '')
    """
    if not isinstance(value, str) or not value.isascii():  # others may become ASCII letters
        return ""
    return "-".join(value.lower().replace("_", " ").replace("-", " ").split())


class WireRole(Enum):
    """Role names accepted on the wire, in any case; ``ROLE_ALIASES`` maps them to the roles."""

    CLIENT = "client"
    SEEKER = "seeker"
    PATIENT = "patient"
    CUSTOMER = "customer"
    USER = "user"
    COUNSELLOR = "counsellor"
    COUNSELOR = "counselor"
    SUPPORTER = "supporter"
    THERAPIST = "therapist"
    AGENT = "agent"
    LISTENER = "listener"
    SYSTEM = "system"
    BOT = "bot"
    SUPERVISOR = "supervisor"

    @classmethod
    def _missing_(cls, value: object) -> "WireRole | None":
        name = spelt(value)
        return next((role for role in cls if role.value == name), None)


class Domain(Enum):
    """The kind of service of a session; also accepted as ``counseling``, ``peer_support``, ….

    >>> Domain("Counseling"), Domain("peer support")
    (<Domain.COUNSELLING: 'counselling'>, <Domain.PEER_SUPPORT: 'peer-support'>)
    """

    COUNSELLING = "counselling"
    PEER_SUPPORT = "peer-support"
    CUSTOMER_SERVICE = "customer-service"

    @classmethod
    def _missing_(cls, value: object) -> "Domain | None":
        name = spelt(value).replace("counseling", "counselling")
        return next((domain for domain in cls if domain.value == name), None)


class Approach(Enum):
    """The method that a session follows; some outcomes are defined for only one approach."""

    MOTIVATIONAL_INTERVIEWING = "motivational-interviewing"


class OutcomeKind(Enum):
    """A judgement by the listener (EPITOME, section 7, uses likes, replies and follows)."""

    LIKE = "like"
    REPLY = "reply"
    FOLLOW = "follow"
    RATING = "rating"


class ConsentStatus(Enum):
    """A person's decision about the analysis of a session."""

    GIVEN = "given"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"


class ConsentPurpose(Enum):
    """A purpose that a person agreed to beyond the analysis by this installation."""

    THIRD_PARTY_PROCESSING = "third-party-processing"


Identifier = Annotated[
    str,
    Meta(min_length=1, max_length=MAX_ID_CHARS, description="Identifier without NUL characters"),
]
Timestamp = Annotated[datetime, Meta(tz=True, description="RFC 3339 with offset")]
WordingVersion = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_VERSION_CHARS,
        description="Version of the wording that the person was shown, for example 2026-03",
    ),
]
Seq = Annotated[int, Meta(ge=0, le=2**31 - 1, description="0,1,2… within the session")]


class Turn(Struct, frozen=True, tag_field="type", tag="turn", kw_only=True):
    """One utterance."""

    session_id: Identifier
    seq: Seq
    speaker_id: Identifier
    role: WireRole
    text: Annotated[
        str, Meta(min_length=1, description="Text; at most 64 KiB including the rest of the event")
    ]
    occurred_at: Timestamp
    turn_id: (
        Annotated[Identifier, Meta(description="The turn's own id: sent twice, it is taken once")]
        | None
    ) = None
    domain: Domain | None = None
    lang: Annotated[str, Meta(max_length=35, description="BCP 47 tag")] | None = None
    consent: (
        Annotated[
            bool, Meta(description="The client agreed to the analysis; applies to the session")
        ]
        | None
    ) = None
    consent_version: WordingVersion | None = None
    channel: Identifier | None = None
    team: Identifier | None = None
    approach: (
        Annotated[
            Approach,
            Meta(description="The method of the session; the first turn with one determines it"),
        ]
        | None
    ) = None
    addressee: (
        Annotated[
            Identifier,
            Meta(description="Of several clients, the `speaker_id` of the one who is answered"),
        ]
        | None
    ) = None

    @property
    def speaker_role(self) -> Role:
        """The role after aliases are resolved."""
        return ROLE_ALIASES[self.role.value]

    @property
    def is_aside(self) -> bool:
        """Whether it is stored and shown only: of a bot, or whispered by a supervisor."""
        return not self.speaker_role.is_scored


class SessionEnd(Struct, frozen=True, tag_field="type", tag="session_end", kw_only=True):
    """Closes a session; later turns with a new ``seq`` are dead-lettered."""

    session_id: Identifier
    occurred_at: Timestamp
    reason: Annotated[str, Meta(max_length=200)] | None = None


class Outcome(Struct, frozen=True, tag_field="type", tag="outcome", kw_only=True):
    """A judgement of a session, or of one turn if ``seq`` is given."""

    session_id: Identifier
    kind: OutcomeKind
    occurred_at: Timestamp
    value: Annotated[
        float, Meta(description="1-5 for a rating; 1 = given, 0 = withdrawn for the others")
    ] = 1.0
    seq: Seq | None = None
    outcome_id: Identifier | None = None


class Consent(Struct, frozen=True, tag_field="type", tag="consent", kw_only=True):
    """A consent record of a session, from the place where consent is recorded.

    Unlike ``Turn.consent``, it also takes effect after the session's end; with a newer version of
    the wording than any before, ``given`` ends a withdrawal.
    """

    session_id: Identifier
    status: ConsentStatus
    occurred_at: Timestamp
    version: WordingVersion | None = None
    speaker_id: Identifier | None = None
    source: Annotated[str, Meta(max_length=100, description="Where it was recorded")] | None = None
    consent_id: Identifier | None = None
    purposes: (
        Annotated[
            list[ConsentPurpose],
            Meta(
                max_length=10,
                description="What the person also agreed to; only with the status `given`",
            ),
        ]
        | UnsetType
    ) = UNSET


class TurnEdit(Struct, frozen=True, tag_field="type", tag="turn_edit", kw_only=True):
    """A new text of an earlier turn, named by its ``seq`` or its ``turn_id``.

    The turn, and every turn whose window has it, is rescored. Of two edits the later one in
    ``occurred_at`` holds.
    """

    session_id: Identifier
    text: Annotated[
        str,
        Meta(min_length=1, description="The whole new text; an edit to nothing is a turn_delete"),
    ]
    occurred_at: Timestamp
    seq: Seq | None = None
    turn_id: Identifier | None = None


class TurnDelete(Struct, frozen=True, tag_field="type", tag="turn_delete", kw_only=True):
    """The erasure of an earlier turn, named by its ``seq`` or its ``turn_id``.

    Its text and scores are erased, and turns whose window had it are scored without it. Its
    ``seq`` stays used.
    """

    session_id: Identifier
    occurred_at: Timestamp
    seq: Seq | None = None
    turn_id: Identifier | None = None


class Questionnaire(Struct, frozen=True, tag_field="type", tag="questionnaire", kw_only=True):
    """A questionnaire that the client of a session filled in; no score rests on it."""

    session_id: Identifier
    instrument: Instrument
    items: Annotated[
        list[Annotated[float, Meta(ge=0, le=10)] | None],
        Meta(
            min_length=4,
            max_length=10,
            description="Answers in the order of the items: phq-9 nine of 0-3, gad-7 seven of 0-3, "
            "session-rating four of 0-10, care ten of 1-5 (null: does not apply, at most two)",
        ),
    ]
    occurred_at: Timestamp
    questionnaire_id: Identifier | None = None


Revision = TurnEdit | TurnDelete
Event = Turn | SessionEnd | Outcome | Consent | Questionnaire | TurnEdit | TurnDelete


class _OfSession(msgspec.Struct):
    session_id: str


class TurnPlace(Struct, frozen=True, tag_field="type", tag="turn"):
    """A turn's session and its number in it."""

    session_id: Identifier
    seq: Seq


_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_place_decoder = msgspec.json.Decoder(TurnPlace)
_session_decoder = msgspec.json.Decoder(_OfSession)
CLOSES_GAP: Final = frozenset(
    {
        "too-large",
        "not-utf-8",
        "lone-surrogate",
        "schema",
        "empty-text",
        "nul-byte",
        "media",
        "implausible-time",
        "contradicts-session",
        "turn-id-taken",
    }
)
"""Reasons why a turn is refused for good; of the others its place is not sure, or is taken."""
_LEAP_SECOND: Final = re.compile(
    rb'("occurred_at"\s*+:\s*+"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:)60(?=[.Zz+-])'
)
"""RFC 3339 has leap seconds, and Python's times have none."""
_FORBIDDEN_MEDIA: Final = frozenset({"audio", "video", "keystrokes"})


def decode(raw: bytes) -> Event:
    """Decode and validate one event.

    Raises:
        ContractError: with code ``too-large``, ``not-utf-8``, ``not-json``, ``lone-surrogate``,
            ``nul-byte``, ``empty-text``, ``media`` or ``schema``.
    """
    if len(raw) > MAX_EVENT_BYTES:
        raise ContractError(
            "too-large", f"the event has {len(raw)} bytes; {MAX_EVENT_BYTES} is the maximum"
        )
    try:
        raw = without_mark(raw)
        raw.decode("utf-8")  # msgspec does not validate the names of unknown fields
        event = _decoder.decode(_LEAP_SECOND.sub(rb"\g<1>59", raw) if b":60" in raw else raw)
    except msgspec.ValidationError as problem:
        raise _validation_error(problem) from None
    except msgspec.DecodeError:
        raise _syntax_error(raw) from None
    except UnicodeDecodeError:
        raise ContractError("not-utf-8", "the event is not valid UTF-8; send it in UTF-8") from None
    except RecursionError:
        raise ContractError("schema", "the event is nested too deeply") from None
    _check(raw, event)
    return event


def peek_session_id(raw: bytes) -> str | None:
    """The session of an event that ``decode`` accepts, at a fraction of its cost.

    Of any other value some string, or None.

    >>> peek_session_id(b'{"text": "Hello.", "session_id": "s"}'), peek_session_id(b"Hello.")
    ('s', None)
    """
    if len(raw) > MAX_EVENT_BYTES:
        return None
    try:
        return _session_decoder.decode(without_mark(raw)).session_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def place_of_refused(raw: bytes) -> TurnPlace | None:
    """Session and number of a turn that ``decode`` refuses, as far as they are legible.

    >>> place_of_refused(b'{"type": "turn", "session_id": "s", "seq": 1, "text": ""}')
    TurnPlace(session_id='s', seq=1)
    >>> place_of_refused(b'{"type": "outcome", "session_id": "s", "seq": 1}')
    """
    legible = surrogates.masked(raw.decode("utf-8", "replace").encode())
    try:
        found = _place_decoder.decode(legible)
    except (msgspec.DecodeError, RecursionError):
        return None
    name = found.session_id
    unsure = "\x00" in name or (legible != raw and ("?" in name or "\ufffd" in name))
    return None if unsure else found


def _check(raw: bytes, event: Event) -> None:
    """Rules that JSON Schema does not express."""
    if rb"\u0000" in raw and "\x00" in "".join(_strings(event)):
        raise ContractError("nul-byte", "a string contains a NUL character")
    try:
        utc(event.occurred_at)
    except OverflowError:
        raise ContractError(
            "schema", "a time outside the years 1 to 9999 in UTC - at `$.occurred_at`"
        ) from None
    _check_content(event)
    if any(b'"%s"' % name.encode() in raw for name in _FORBIDDEN_MEDIA):
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        if found := sorted(_FORBIDDEN_MEDIA & fields.keys()):
            raise ContractError("media", f"text only: the field `{found[0]}` is refused")


def _check_content(event: Event) -> None:
    """Check the text, the items or the value of an event."""
    match event:
        case Turn() | TurnEdit() if not event.text.strip():
            raise ContractError("empty-text", "the text of the turn is empty")
        case TurnEdit(seq=None, turn_id=None) | TurnDelete(seq=None, turn_id=None):
            raise ContractError("schema", "name the turn by `seq` or `turn_id` - at `$.seq`")
        case Consent(status=status, purposes=[_, *_]) if status is not ConsentStatus.GIVEN:
            raise ContractError("schema", "only given consent has purposes - at `$.purposes`")
        case Questionnaire(instrument=instrument, items=items):
            if (problem := fault(instrument, items)) is not None:
                raise ContractError("schema", f"{problem} - at `$.items`")
        case Outcome(kind=OutcomeKind.RATING, value=value) if not 1.0 <= value <= 5.0:
            raise ContractError("schema", "a rating is outside 1-5 - at `$.value`")
        case _:
            pass


def _strings(event: Event) -> list[str]:
    return [value for value in msgspec.structs.asdict(event).values() if isinstance(value, str)]


def _syntax_error(raw: bytes) -> ContractError:
    """Name the reason: text cut inside an emoji has a lone surrogate, which gets its own code."""
    legible = surrogates.masked(raw)
    if legible != raw and _is_json(legible):
        return ContractError(
            "lone-surrogate",
            r"a string contains a lone surrogate: half of a character that JSON writes as two "
            r"escapes, such as \ud83d\ude00; do not cut text between them",
        )
    return ContractError(
        "not-json", "the event is not a single JSON document; write one JSON object on each line"
    )


def _is_json(raw: bytes) -> bool:
    try:
        msgspec.json.decode(raw, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _validation_error(problem: msgspec.ValidationError) -> ContractError:
    """Reword msgspec's error: only an unknown tag or enum value would quote the input."""
    message = str(problem)
    if message.startswith("Invalid enum value"):
        path = message.rpartition("`")[0].rpartition("`")[2]
        message = f"an unknown value{_valid_values(path)} - at `{path}`"
    elif message.startswith("Invalid value"):
        message = (
            "the event's type is not one of turn, session_end, outcome, consent, questionnaire, "
            "turn_edit, turn_delete - at `$.type`"
        )
    elif "RFC3339" in message or "`datetime`" in message:
        path = message.rpartition("`$")[2]
        message = f"a time such as 2026-03-02T09:00:00Z, with an offset, is needed - at `${path}"
    elif message.startswith("Object contains unknown field"):
        message = "an unknown field"
    if message.startswith("Expected `str` of length >= 1") and "$.text" in message:
        return ContractError("empty-text", "the text of the turn is empty")
    return ContractError("schema", message)


_CHOICES: Final[dict[str, type[Enum]]] = {
    "role": WireRole,
    "domain": Domain,
    "approach": Approach,
    "kind": OutcomeKind,
    "status": ConsentStatus,
    "purposes": ConsentPurpose,
}


def _valid_values(path: str) -> str:
    """The values of a field, for a refusal.

    >>> _valid_values("$.domain")
    '; one of counselling, peer-support, customer-service is needed'
    """
    choices = _CHOICES.get(path.removeprefix("$.").partition("[")[0])
    if choices is None:
        return ""
    return f"; one of {', '.join(choice.value for choice in choices)} is needed"


def utc(moment: datetime) -> datetime:
    """Convert to UTC, the only time zone of the store and the core."""
    return moment.astimezone(UTC)
