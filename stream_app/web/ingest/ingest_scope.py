"""Which sessions a program may send events for: its token may be limited to a team and so on."""

from collections.abc import Container, Mapping
from typing import Final

from stream_app.contracts.events import Consent, Event, SessionEnd, Turn, TurnDelete, TurnEdit
from stream_app.core.session import origin
from stream_app.core.session.origin import Origin
from stream_app.store.accounts.people import IngestScope

OUT_OF_SCOPE = "out-of-scope"
_WHAT: Final[dict[type[Event], str]] = {
    SessionEnd: "an end",
    Consent: "a consent record",
    TurnEdit: "an edit",
    TurnDelete: "a deletion",
}


def refusal(
    scope: IngestScope, event: Event, known: Mapping[str, Origin], foreign: Container[str]
) -> str | None:
    """Why the event is outside the scope; None if it is inside.

    ``foreign``: sessions that others began. A turn that begins a session must state what the scope
    limits. An outcome of an unknown session is allowed, because it changes nothing.
    """
    if not scope.limits:
        return None
    found = known.get(event.session_id)
    if (detail := _too_early(event, found, foreign)) is not None:
        return detail
    for name, wanted in scope.limits:
        given = origin.stated(event, name)
        if given not in (None, wanted):
            return f"this token may only send events of {name} {wanted}"
        if found is not None and getattr(found, name) != wanted:
            return (
                f"this token may only send to sessions of {name} {wanted}; use another session id"
            )
        if found is None and isinstance(event, Turn) and given is None:
            return f"this token needs {name}: {wanted} in the turn that begins a session"
    return None


def _too_early(event: Event, found: Origin | None, foreign: Container[str]) -> str | None:
    """Why an end, a consent record or an edit would affect whichever session takes the id.

    Nobody ends a session that somebody else began.
    """
    if found is None and isinstance(event, Consent | SessionEnd | TurnEdit | TurnDelete):
        what = _WHAT[type(event)]
        return f"this token may send {what} only after the session's first turn"
    if isinstance(event, SessionEnd) and event.session_id in foreign:
        return "this token may only end sessions that it began"
    return None
