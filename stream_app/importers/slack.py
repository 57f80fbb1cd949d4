"""Messages of Slack: every channel is a session.

Reads payloads of the Events API, and the messages of an export or of `conversations.history`.
"""

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import Any, Final

from stream_app.client.events import Sendable
from stream_app.importers import imported
from stream_app.importers.imported import (
    SYSTEM,
    Item,
    People,
    Skipped,
    Unsent,
    mapping,
    moment,
    said,
)

_WORDS: Final = frozenset({None, "file_share", "thread_broadcast", "me_message"})
"""Subtypes of messages with a person's words."""
_LINK: Final = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")


def events_of(payload: Any, people: People) -> Iterator[Item]:
    """The message of an `event_callback`; of other payloads nothing."""
    if not isinstance(payload, dict) or payload.get("type") != "event_callback":
        yield Skipped("payload", "no event of Slack's Events API")
        return
    event = payload.get("event")
    if isinstance(event, dict) and event.get("type") != "message":
        return
    yield from of_message(event, str(payload.get("team_id") or "slack"), None, people)


def of_message(message: Any, team: str, channel: str | None, people: People) -> Iterator[Item]:
    """A message. ``channel``: of an export, whose messages do not name it."""
    place = str(message.get("ts", "message")) if isinstance(message, dict) else "message"
    return imported.items(place, lambda: _read(message, team, channel, people))


def _read(
    message: Mapping[str, Any], team: str, channel: str | None, people: People
) -> Iterator[Sendable]:
    subtype = message.get("subtype")
    if subtype == "message_changed":
        yield from _edit(message, team, channel)
        return
    if subtype == "message_deleted":
        stamp = imported.string(message.get("deleted_ts"), "message")
        yield imported.deleted(*_place(message, team, channel, stamp), moment(message.get("ts")))
        return
    bot = message.get("bot_id") or mapping(message.get("bot_profile"), "bot").get("id")
    by_program = bot is not None or subtype == "bot_message"
    if subtype not in _WORDS and not by_program:
        raise Unsent(f"a notice of Slack ({subtype})")
    mapping(message.get("edited"), "edit")
    user = imported.string(message.get("user") or (bot or "bot" if by_program else None), "user")
    stamp = imported.string(message.get("ts"), "time")
    session, number = _place(message, team, channel, stamp)
    yield said(
        session,
        SYSTEM if by_program and user not in people.others else people.role(user),
        plain(str(message.get("text") or "")),
        who=f"slack-{user}",
        at=moment(stamp),
        message=number,
        consent=people.consent,
        channel="slack",
    )


def _edit(message: Mapping[str, Any], team: str, channel: str | None) -> Iterator[Sendable]:
    """The new text of a message; Slack also announces previews of links in this way."""
    new, old = (mapping(message.get(n), "message") for n in ("message", "previous_message"))
    place = _place(message, team, channel, imported.string(new.get("ts"), "message"))
    edit = mapping(new.get("edited"), "edit")
    at = moment(edit.get("ts") or message.get("ts"))
    if new.get("subtype") == "tombstone":
        yield imported.deleted(*place, at)
    elif new.get("text") == old.get("text"):
        raise Unsent("an edit that changes no words")
    else:
        yield imported.edited(*place, plain(str(new.get("text") or "")), at)


def _place(
    message: Mapping[str, Any], team: str, channel: str | None, stamp: str
) -> tuple[str, str]:
    """The session and the id of a message."""
    place = imported.string(message.get("channel") or channel, "channel")
    return f"slack-{team}-{place}", f"slack-{stamp}"


def plain(text: str) -> str:
    """The words of Slack's markup; of links and mentions, what is shown.

    >>> plain("Hi <@U123|ben>, see <https://x.example|this> &amp; <#C1|help> <!here>")
    'Hi @ben, see this & #help @here'
    """
    return unescape(_LINK.sub(_shown, text))


def _shown(found: re.Match[str]) -> str:
    target, label = found[1], found[2]
    if target[:1] in ("@", "#"):
        return f"{target[0]}{label or target[1:]}"
    if target[:1] == "!":
        return label or f"@{target[1:].partition('^')[0]}"
    return label or target
