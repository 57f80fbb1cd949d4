"""Notifications and conversations of Intercom: every conversation is a session."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from stream_app.client import end
from stream_app.client.events import Sendable
from stream_app.importers import imported, written
from stream_app.importers.imported import (
    SYSTEM,
    Item,
    Skipped,
    Unsent,
    identifier,
    mapping,
    moment,
    said,
)

_REDACTED: Final = "conversation_part.redacted"
_OPERATOR: Final = "conversation.operator."
"""Begin of the topics of what Intercom's bot does, also under an admin's name."""
_SAID: Final = frozenset({"comment", "open", "close", "quick_reply"})
"""Types of parts that reach the customer; ``open``: a message that reopens the conversation."""
_SILENT: Final = frozenset({"note", "note_and_reopen", "assignment", "default_assignment"})
_ROLES: Final = {
    "admin": "counsellor",
    "team": "counsellor",
    "user": "client",
    "lead": "client",
    "contact": "client",
    "bot": SYSTEM,
}
_ABOUT: Final = {"domain": "customer-service", "channel": "help-desk"}


def events_of(payload: Any, consent: bool | None = None) -> Iterator[Item]:
    """The messages of a notification, and the end of a closed conversation."""
    try:
        item, topic = payload["data"]["item"], str(payload["topic"])
        conversation = str(item["id"])
    except (KeyError, TypeError):
        yield Skipped("notification", "not as Intercom documents it")
        return
    if topic == _REDACTED:
        yield from _deletions(conversation, item)
        return
    if topic.endswith(".deleted"):
        yield Skipped(conversation, "deletes the conversation: erase its session by hand")
        return
    if topic.endswith(".created") and not isinstance(item.get("source"), dict):
        yield Skipped(conversation, "its first message is missing")
    elif topic.endswith(".created"):
        yield from _part(conversation, {**_source(item), "part_type": "comment"}, consent)
    else:
        by_program = topic.startswith(_OPERATOR)
        yield from _parts(conversation, item, consent, by_program=by_program)
    if topic.endswith(".closed"):
        yield from imported.items(
            conversation, lambda: [_end(conversation, payload.get("created_at"))]
        )


def _deletions(conversation: str, item: Mapping[str, Any]) -> Iterator[Item]:
    """The parts of a notification that are deleted; a single one needs no mark."""
    found = _list_of_parts(item)
    single = found if len(found) == 1 else []
    marked = [part for part in found if isinstance(part, dict) and part.get("redacted")]
    source = item.get("source")
    if isinstance(source, dict) and source.get("redacted"):
        marked.append(source)
    for part in marked or single:
        yield from imported.items(conversation, partial(_deletions_of, conversation, part))
    if not marked and not single:
        yield Skipped(conversation, "deletes a part that it does not name: erase it by hand")


def _deletions_of(conversation: str, part: Mapping[str, Any]) -> Iterator[Sendable]:
    number, at = part["id"], part.get("updated_at") or part.get("created_at")
    yield imported.deleted(f"intercom-{conversation}", f"intercom-{number}", moment(at))


def of_conversation(conversation: Any, consent: bool | None = None) -> Iterator[Item]:
    """The messages of a whole conversation, as `GET /conversations/{id}` answers."""
    number = str(conversation.get("id")) if isinstance(conversation, dict) else "conversation"
    if not isinstance(conversation, dict) or "id" not in conversation:
        yield Skipped(number, "not as Intercom documents it")
        return
    yield from _part(number, {**_source(conversation), "part_type": "comment"}, consent)
    yield from _parts(number, conversation, consent)


def _source(item: Mapping[str, Any]) -> dict[str, Any]:
    """The first message of a conversation, which is no part."""
    source = item.get("source")
    return {"created_at": item.get("created_at"), **(source if isinstance(source, dict) else {})}


def _parts(
    conversation: str, item: Mapping[str, Any], consent: bool | None, *, by_program: bool = False
) -> Iterator[Item]:
    for part in _list_of_parts(item):
        yield from _part(conversation, part, consent, by_program=by_program)


def _list_of_parts(item: Mapping[str, Any]) -> list[Any]:
    found = item.get("conversation_parts")
    parts = found.get("conversation_parts") if isinstance(found, dict) else None
    return parts if isinstance(parts, list) else []


def _part(
    conversation: str, part: Any, consent: bool | None, *, by_program: bool = False
) -> Iterator[Item]:
    place = f"{conversation} {part.get('id', '')}" if isinstance(part, dict) else conversation
    return imported.items(
        place.strip(), lambda: _read(conversation, part, consent, by_program=by_program)
    )


def _read(
    conversation: str, part: Mapping[str, Any], consent: bool | None, *, by_program: bool
) -> Iterator[Sendable]:
    kind, author = part.get("part_type"), mapping(part.get("author"), "author")
    body = part.get("body")
    if body is None and kind != "comment":
        return  # what happened to the conversation, without words
    if kind not in _SAID:
        about = "an internal note" if kind in _SILENT else "no message to the customer"
        raise Unsent(f"{about} ({kind})")
    if part.get("redacted"):
        raise Unsent("deleted")
    role = _ROLES.get(str(author.get("type")))
    by_program = by_program and role == "counsellor"
    if by_program or author.get("from_ai_agent") or author.get("is_ai_answer"):
        role = SYSTEM
    if role is None:
        raise Unsent("its author is neither the team's nor a customer")
    number = part.get("id")
    yield said(
        f"intercom-{conversation}",
        role,
        written.of_html(body or ""),
        who=f"intercom-{author['id']}",
        at=moment(part.get("created_at")),
        message=None if number is None else f"intercom-{number}",
        consent=consent,
        **_ABOUT,
    )


def _end(conversation: str, at: Any) -> Sendable:
    return end(identifier("intercom", conversation), "closed", moment(at))
