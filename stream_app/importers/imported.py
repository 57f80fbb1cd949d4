"""Shared by all importers: events and what is left out, identifiers, text and times.

An importer yields an ``Item`` for each thing that it is given: an event to send, or ``Skipped``
with the reason. It raises nothing because of one odd message, so that a bridge goes on.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from msgspec import Struct

from stream_app.client import delete, edit, turn
from stream_app.client.events import Sendable
from stream_app.contracts.events import MAX_ID_CHARS, ROLE_ALIASES, Role, spelt
from stream_app.errors import RapportError

T = TypeVar("T")
SYSTEM: Final = Role.SYSTEM.value
"""The role of bots and automatic messages."""
DIGEST_CHARS: Final = 32
_SURROGATE: Final = re.compile(r"[\ud800-\udfff\x00]")
_KEY: Final = re.compile(r"[ !#-\[\]-~]{1,150}")
_ODD: Final = (ValueError, KeyError, TypeError, AttributeError, OverflowError, IndexError, OSError)
"""Errors that a reader raises on a message that is not as documented."""


class ImportRefused(RapportError):
    """A file cannot be imported as it is; the message says what to do."""


class Skipped(Struct, frozen=True):
    """Something that is not sent. ``place``: its id or number; ``reason`` never quotes it."""

    place: str
    reason: str

    def __str__(self) -> str:
        """One line for a log."""
        return readable(f"{self.place}: {self.reason}")


class Unsent(Exception):
    """Raised by the reader of one message: it is not sent, for this reason."""


Item = Sendable | Skipped
Report = Callable[[Skipped], object]
"""Called with each thing that is left out."""


def unreported(_: Skipped) -> None:
    """Tell nobody."""


class People(Struct, frozen=True):
    """Accounts of counsellors and bots in a chat; everybody else is a client.

    ``bots``: programs, whose words are kept as those of the role ``system`` and never scored.
    ``others``: neither, such as observers. ``consent``: True only if the terms of the service ask
    for consent to this analysis; otherwise send consent records.
    """

    counsellors: Collection[str] = ()
    others: Collection[str] = ()
    consent: bool | None = None
    bots: Collection[str] = ()

    def role(self, account: str) -> str:
        """The role of an account.

        Raises:
            Unsent: the account is neither a counsellor's nor a client's.
        """
        if account in self.others:
            raise Unsent("from an account that is neither a counsellor's nor a client's")
        if account in self.bots:
            return SYSTEM
        return "counsellor" if account in self.counsellors else "client"


def items(place: str, read: Callable[[], Iterable[Sendable]]) -> Iterator[Item]:
    """The events of one message; or why it is left out, whatever is wrong with it."""
    try:
        found = list(read())
    except Unsent as reason:
        yield Skipped(place, str(reason))
    except _ODD as problem:
        yield Skipped(place, f"not as its service documents it ({type(problem).__name__})")
    else:
        yield from found


def said(
    session: str,
    role: str,
    text: str,
    *,
    who: str,
    at: datetime,
    message: str | None = None,
    consent: bool | None = None,
    **about: Any,
) -> Sendable:
    """A turn of a chat; ids are made to fit, and half characters replaced.

    Raises:
        Unsent: there are no words.
    """
    words = readable(text).strip()
    if not words:
        raise Unsent("it has no words (an attachment, or an empty message)")
    return turn(
        identifier(session),
        role,
        words,
        speaker_id=identifier(who),
        occurred_at=at,
        turn_id=None if message is None else identifier(message),
        consent=consent,
        **about,
    )


def edited(session: str, message: str, text: str, at: datetime) -> Sendable:
    """A new text of a message; one without words takes the message's place as a deletion."""
    words = readable(text).strip()
    if not words:
        return deleted(session, message, at)
    return edit(identifier(session), words, turn_id=identifier(message), occurred_at=at)


def deleted(session: str, message: str, at: datetime) -> Sendable:
    """The deletion of a message."""
    return delete(identifier(session), turn_id=identifier(message), occurred_at=at)


def identifier(*parts: str) -> str:
    """Parts with hyphens between them; too long, they end in a digest of the whole.

    >>> identifier("zendesk", "35436")
    'zendesk-35436'
    >>> len(identifier("x" * 255)), identifier("x" * 255) == identifier("x" * 256)
    (200, False)
    """
    whole = readable("-".join(parts))
    if len(whole) <= MAX_ID_CHARS:
        return whole
    return f"{whole[: MAX_ID_CHARS - DIGEST_CHARS - 1]}~{digest(whole)}"


def key(*parts: str) -> str:
    """An idempotency key of a message: its id, or a digest of it if headers cannot have the id.

    >>> key("matrix", "$4711"), key("matrix", "$é") == key("matrix", "$é")
    ('matrix $4711', True)
    """
    whole = " ".join(parts)
    return whole if _KEY.fullmatch(whole) else f"{parts[0]} {digest(whole)}"


def digest(text: str) -> str:
    """A short digest."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARS]


def readable(text: str) -> str:
    r"""Text without NUL and without halves of characters, which no event may have.

    >>> readable("\ud83d\ude00"), readable("a\ud83d\x00")
    ('😀', 'a��')
    """
    if not _SURROGATE.search(text):
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\x00", "\ufffd")


def string(value: Any, name: str) -> str:
    """A string that has characters.

    Raises:
        Unsent: it is something else.
    """
    if not isinstance(value, str) or not value:
        raise Unsent(f"its {name} is missing or no text")
    return value


def mapping(value: Any, name: str) -> Mapping[str, Any]:
    """A JSON object; none is an empty one.

    Raises:
        Unsent: it is something else.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Unsent(f"its {name} is no object")
    return value


def moment(seconds: Any) -> datetime:
    """A Unix time, a number or digits.

    Raises:
        Unsent: it is something else, or outside the calendar.
    """
    try:
        if isinstance(seconds, bool):
            raise TypeError
        return datetime.fromtimestamp(float(seconds), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise Unsent("its time cannot be read") from None


def timestamp(text: Any) -> datetime:
    """An ISO 8601 time with an offset.

    Raises:
        Unsent: it is something else.
    """
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise Unsent("its time cannot be read") from None
    if found.tzinfo is None:
        raise Unsent("its time has no offset")
    return found


def starts_at(text: str) -> datetime:
    """The time of an option.

    Raises:
        ImportRefused: it cannot be read, or has no offset.
    """
    try:
        return timestamp(text)
    except Unsent:
        raise ImportRefused(
            f"{text} is no time with an offset: write it as 2026-03-02T09:00:00Z"
        ) from None


def role_of(name: object) -> Role | None:
    """The role of a name that the wire accepts, in any case; None of anything else."""
    return ROLE_ALIASES.get(spelt(name))
