"""Comments of Zendesk's tickets: every ticket is a session.

Two kinds of webhooks are read: events of tickets (`zen:event-type:ticket.comment_added` and
`ticket.status_changed`), and triggers with this JSON body, on public comments::

    {"ticket": "{{ticket.id}}", "status": "{{ticket.status}}",
     "author": "{{current_user.id}}", "agent": "{{current_user.is_agent}}",
     "text": "{{ticket.latest_public_comment}}", "at": "{{ticket.updated_at_with_timestamp}}"}
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
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
    said,
    timestamp,
)

_EVENT: Final = "zen:event-type:ticket."
_PROGRAM: Final = "-1"
"""The author of comments that Zendesk writes itself, by a trigger or an automation."""
_ENDED: Final = frozenset({"solved", "closed"})
_HEAD: Final = re.compile(r"\s*-{20,}\s*\n+[^\n]*\d{1,2}:\d{2}[^\n]*\n+")
"""Matches what `latest_public_comment_formatted` puts before a comment: rule, author, time."""
_HTML: Final = re.compile(r"<(?:p|div|br|blockquote|span|ul|ol|table)\b[^>]*>", re.IGNORECASE)
_ABOUT: Final = {"domain": "customer-service", "channel": "help-desk"}


def events_of(payload: Any, consent: bool | None = None) -> Iterator[Item]:
    """The comment of a webhook, and the end of a solved ticket."""
    if not isinstance(payload, dict):
        yield Skipped("webhook", "not as Zendesk documents it")
    elif isinstance(kind := payload.get("type"), str) and kind.startswith(_EVENT):
        yield from _of_event(payload, kind.removeprefix(_EVENT), consent)
    else:
        yield from _of_trigger(payload, consent)


def _of_trigger(payload: Mapping[str, Any], consent: bool | None) -> Iterator[Item]:
    ticket = str(payload.get("ticket", "ticket"))
    text = payload.get("text")
    if text is None or str(text).strip():

        def comment() -> list[Sendable]:
            author, agent = str(payload["author"]), _is_agent(payload["agent"])
            words = imported.string(text, "text")
            return [_comment(str(payload["ticket"]), author, agent, words, _at(payload), consent)]

        yield from imported.items(ticket, comment)
    status = payload.get("status")
    if isinstance(status, str) and status.lower() in _ENDED:
        yield from imported.items(
            ticket, lambda: [end(identifier("zendesk", ticket), status, _at(payload))]
        )


def _of_event(payload: Mapping[str, Any], kind: str, consent: bool | None) -> Iterator[Item]:
    detail = payload.get("detail")
    ticket = str(detail.get("id", "ticket")) if isinstance(detail, dict) else "ticket"
    yield from imported.items(ticket, lambda: _read_event(payload, kind, consent))


def _read_event(payload: Mapping[str, Any], kind: str, consent: bool | None) -> Iterator[Sendable]:
    event, ticket = mapping(payload["event"], "event"), str(payload["detail"]["id"])
    at = timestamp(payload["time"])
    if kind == "status_changed":
        if str(event["current"]).lower() in _ENDED:
            yield end(identifier("zendesk", ticket), str(event["current"]).lower(), at)
        return
    if kind != "comment_added":
        raise Unsent(f"no comment ({kind})")
    comment = mapping(event["comment"], "comment")
    author = mapping(comment["author"], "author")
    if comment["is_public"] is not True:
        raise Unsent("an internal note")
    agent = _is_agent(author["is_staff"])
    words = imported.string(comment["body"], "text")
    yield _comment(ticket, str(author["id"]), agent, words, at, consent, str(comment["id"]))


def _comment(
    ticket: str,
    author: str,
    agent: bool,
    text: str,
    at: datetime,
    consent: bool | None,
    number: str | None = None,
) -> Sendable:
    bare = _HEAD.sub("", text, count=1)
    return said(
        f"zendesk-{ticket}",
        SYSTEM if author == _PROGRAM else "counsellor" if agent else "client",
        written.of_mail(written.of_html(bare) if _HTML.search(bare) else bare),
        who=f"zendesk-{author}",
        at=at,
        message=None if number is None else f"zendesk-{number}",
        consent=consent,
        **_ABOUT,
    )


def _at(payload: Mapping[str, Any]) -> datetime:
    return timestamp(payload.get("at"))


def _is_agent(given: Any) -> bool:
    """JSON's boolean, or the word that a placeholder writes.

    Raises:
        Unsent: it is neither, so nobody knows whose words these are.
    """
    word = str(given).strip().lower()
    if word not in ("true", "false"):
        raise Unsent("it does not say whether the author is an agent")
    return word == "true"
