"""Messages of Matrix rooms: every room is a session, every message a turn."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from stream_app.client import end
from stream_app.client.events import Sendable
from stream_app.importers import imported
from stream_app.importers.imported import (
    SYSTEM,
    Item,
    People,
    Unsent,
    identifier,
    mapping,
    moment,
    said,
)

MESSAGES: Final = (
    '{"types": ["m.room.message", "m.room.member", "m.room.redaction", "m.room.encrypted"], '
    '"limit": 500}'
)
"""A filter for what ``events_of`` reads, and what it reports."""
FILTER: Final = f'{{"room": {{"timeline": {MESSAGES}}}}}'
"""The same, of a sync."""
_WORDS: Final = ("m.text", "m.emote")
_NOTICE: Final = "m.notice"
"""The type of messages that programs write."""
_FALLBACK: Final = re.compile(r"(?:>[^\n]*(?:\n|$))+\n?")


def events_of(
    room: str, timeline: Iterable[Any], me: str, people: People
) -> Iterator[tuple[str, Item]]:
    """The events of a room's new messages, each with its key, which has Matrix's event id.

    Args:
        room: its id.
        timeline: events as Matrix has them.
        me: the account that reads, whose messages are none of the conversation.
        people: whose accounts are whose.
    """
    for event in timeline:
        event_id = event.get("event_id") if isinstance(event, dict) else None
        place = event_id if isinstance(event_id, str) and event_id else "an event without an id"
        for item in imported.items(place, partial(_read, room, event, me, people)):
            yield imported.key("matrix", place), item


def _read(room: str, event: Mapping[str, Any], me: str, people: People) -> Iterator[Sendable]:
    """The event of a message, and the session's end when a client leaves."""
    kind, content = event["type"], mapping(event["content"], "content")
    sender = imported.string(event["sender"], "sender")
    imported.string(event["event_id"], "id")
    if kind == "m.room.member":
        left = content.get("membership") in ("leave", "ban")
        staff = (*people.counsellors, *people.others, *people.bots, me)
        if left and event.get("state_key") not in staff:
            yield end(identifier(room), "the client left", moment(_seconds(event)))
        return
    if sender == me:
        return
    if kind == "m.room.redaction":
        message = imported.string(event.get("redacts") or content.get("redacts"), "message")
        yield imported.deleted(room, message, moment(_seconds(event)))
        return
    if kind == "m.room.encrypted":
        raise Unsent("encrypted, and cannot be read")
    if kind == "m.room.message":
        role = SYSTEM if content.get("msgtype") == _NOTICE else people.role(sender)
        relation = mapping(content.get("m.relates_to"), "relation")
        if relation.get("rel_type") == "m.replace":
            new = mapping(content.get("m.new_content"), "new content")
            message = imported.string(relation.get("event_id"), "message")
            yield imported.edited(room, message, _text(event, new), moment(_seconds(event)))
            return
        text = _text(event, content)
        yield said(
            room,
            role,
            text,
            who=sender,
            at=moment(_seconds(event)),
            message=event["event_id"],
            consent=people.consent,
            channel="matrix",
        )


def _text(event: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """Return the text that the sender wrote.

    Raises:
        Unsent: it is no message of a person.
    """
    if not content and "redacted_because" in mapping(event.get("unsigned"), "unsigned data"):
        raise Unsent("deleted")
    relation = mapping(content.get("m.relates_to"), "relation")
    kind, body = content.get("msgtype"), imported.string(content.get("body"), "text")
    if kind not in (*_WORDS, _NOTICE) and content.get("filename") in (None, body):
        raise Unsent("an attachment without a caption")
    if "m.in_reply_to" in relation and body.startswith((">", "* >")):
        return _FALLBACK.sub("", body, count=1)
    return body


def _seconds(event: Mapping[str, Any]) -> float:
    stamp = event["origin_server_ts"]
    if isinstance(stamp, bool) or not isinstance(stamp, int | float):
        raise Unsent("its time cannot be read")
    return stamp / 1000
