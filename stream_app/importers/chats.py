"""Reads files with messages of a chat or a help desk: exports, answers of APIs, webhooks."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from stream_app.importers import intercom, matrix, slack, twilio, zendesk
from stream_app.importers.cues import decoded
from stream_app.importers.imported import ImportRefused, Item, People, Skipped

Service = Literal["intercom", "matrix", "slack", "twilio", "zendesk"]
_LISTS: Final = ("messages", "chunk", "conversations", "events")
"""Names under which answers and exports have their messages."""


class Chat(Struct, frozen=True):
    """Facts that a file lacks. ``room``: the channel or room of messages that do not name it."""

    room: str
    people: People


def read(file: Path, service: Service, people: People, room: str | None = None) -> list[Item]:
    """The events of a file in the order of their time, and what is left out.

    Args:
        file: JSON or JSON lines: messages, payloads of webhooks, or an object with a list of them.
        service: whose messages they are.
        people: whose accounts are whose.
        room: of messages that do not name it; by default, the file's folder, as in Slack's exports.

    Raises:
        ImportRefused: it is no JSON.
    """
    chat = Chat(room or file.absolute().parent.name, people)
    found = [item for message in _messages(file) for item in _READERS[service](message, chat)]
    left_out: list[Item] = [item for item in found if isinstance(item, Skipped)]
    events = [item for item in found if not isinstance(item, Skipped)]
    return [*left_out, *sorted(events, key=lambda event: event.occurred_at)]


def _messages(file: Path) -> list[Any]:
    text = decoded(file)
    try:
        found = [json.loads(text)]
    except (ValueError, RecursionError):
        found = [_line(line, n, file) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(found) == 1 and isinstance(found[0], dict):
        named = next((name for name in _LISTS if isinstance(found[0].get(name), list)), None)
        found = found if named is None else found[0][named]
    return found[0] if len(found) == 1 and isinstance(found[0], list) else found


def _line(line: str, number: int, file: Path) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise ImportRefused(f"{file}, line {number} is no JSON: give JSON or JSON lines") from None


def _intercom(message: Any, chat: Chat) -> Iterable[Item]:
    if isinstance(message, dict) and "topic" in message:
        return intercom.events_of(message, chat.people.consent)
    return intercom.of_conversation(message, chat.people.consent)


def _matrix(message: Any, chat: Chat) -> Iterator[Item]:
    stated = message.get("room_id") if isinstance(message, dict) else None
    room = stated if isinstance(stated, str) and stated else chat.room
    for _, item in matrix.events_of(room, [message], "", chat.people):
        yield item


def _slack(message: Any, chat: Chat) -> Iterable[Item]:
    if isinstance(message, dict) and message.get("type") == "event_callback":
        return slack.events_of(message, chat.people)
    team = message.get("team") if isinstance(message, dict) else None
    return slack.of_message(message, str(team or "slack"), chat.room, chat.people)


def _twilio(message: Any, chat: Chat) -> Iterable[Item]:
    if isinstance(message, dict) and "conversation_sid" in message:
        return twilio.of_message(message, chat.people)
    return twilio.events_of(message, chat.people)


def _zendesk(message: Any, chat: Chat) -> Iterable[Item]:
    return zendesk.events_of(message, chat.people.consent)


_READERS: Final[dict[str, Callable[[Any, Chat], Iterable[Item]]]] = {
    "intercom": _intercom,
    "matrix": _matrix,
    "slack": _slack,
    "twilio": _twilio,
    "zendesk": _zendesk,
}
