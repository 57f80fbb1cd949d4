"""Messages of Twilio Conversations: every conversation is a session.

Reads webhooks (`onMessageAdded` and so on), Event Streams, and messages of the REST API, which name
the same things in three ways.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from stream_app.client import end
from stream_app.client.events import Sendable
from stream_app.importers import imported
from stream_app.importers.imported import (
    SYSTEM,
    Item,
    People,
    Skipped,
    Unsent,
    identifier,
    said,
    timestamp,
)

_STREAM: Final = "com.twilio.conversations."
_ADDED: Final = frozenset({"onMessageAdded", "message.added"})
_UPDATED: Final = frozenset({"onMessageUpdated", "message.updated"})
_REMOVED: Final = frozenset({"onMessageRemoved", "message.removed"})
_STATE: Final = frozenset({"onConversationStateUpdated", "conversation-state.updated"})
_SYSTEM: Final = "system"
"""The author of messages that a program sends without naming one."""


def events_of(payload: Any, people: People) -> Iterator[Item]:
    """The message of a webhook or of an event stream, and the end of a closed conversation."""
    if not isinstance(payload, dict):
        yield Skipped("payload", "not as Twilio documents it")
        return
    kind, stated = str(payload.get("EventType")), str(payload.get("type"))
    fields: Any = payload
    if stated.startswith(_STREAM):
        kind, fields = stated.removeprefix(_STREAM), payload.get("data")
    place = str(fields.get("MessageSid") or kind) if isinstance(fields, dict) else kind
    yield from imported.items(place, lambda: _read(kind, fields, people))


def of_message(message: Any, people: People) -> Iterator[Item]:
    """A message as the REST API answers."""
    place = str(message.get("sid", "message")) if isinstance(message, dict) else "message"

    def read() -> list[Sendable]:
        names = ("conversation_sid", "sid", "author", "body", "date_created")
        conversation, number, author, text, created = (message.get(name) for name in names)
        return [_message(conversation, number, author, text, created, people)]

    return imported.items(place, read)


def _read(kind: str, fields: Mapping[str, Any], people: People) -> Iterator[Sendable]:
    if kind in _ADDED:
        names = ("ConversationSid", "MessageSid", "Author", "DateCreated")
        conversation, number, author, created = (fields.get(name) for name in names)
        yield _message(conversation, number, author, _body(fields), created, people)
    elif kind in _UPDATED or kind in _REMOVED:
        yield _change(kind, fields, people)
    elif kind in _STATE and fields.get("StateTo") == "closed":
        session = imported.string(fields.get("ConversationSid"), "conversation")
        at = timestamp(fields.get("StateUpdated"))
        yield end(identifier("twilio", session), "closed", at)


def _body(fields: Mapping[str, Any]) -> Any:
    return fields.get("Body", fields.get("MessageBody"))


def _change(kind: str, fields: Mapping[str, Any], people: People) -> Sendable:
    """A new text, or the deletion of a message; without a new text, other things have changed."""
    session = f"twilio-{imported.string(fields.get('ConversationSid'), 'conversation')}"
    number = imported.string(fields.get("MessageSid"), "id")
    times = ("DateRemoved", "DateUpdated", "DateCreated")
    at = timestamp(next((fields[name] for name in times if fields.get(name)), None))
    if kind in _REMOVED:
        return imported.deleted(session, number, at)
    _author(fields.get("Author"), people)
    return imported.edited(session, number, imported.string(_body(fields), "text"), at)


def _message(
    conversation: Any, number: Any, author: Any, text: Any, created: Any, people: People
) -> Sendable:
    session = imported.string(conversation, "conversation")
    who, role = _author(author, people)
    if text is not None and not isinstance(text, str):
        raise Unsent("its text is no text")
    return said(
        f"twilio-{session}",
        role,
        text or "",
        who=f"twilio-{who}",
        at=timestamp(created),
        message=imported.string(number, "id"),
        consent=people.consent,
        channel="twilio",
    )


def _author(author: Any, people: People) -> tuple[str, str]:
    """Return a message's author, with the role.

    Raises:
        Unsent: nobody of the conversation.
    """
    who = imported.string(author, "author")
    by_program = who == _SYSTEM and who not in (*people.counsellors, *people.others)
    return who, SYSTEM if by_program else people.role(who)
