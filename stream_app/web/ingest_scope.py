"""Which sessions a program may send events for: its token may be limited to a team and so on."""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from stream_app.contracts.events import Consent, Event, Turn
from stream_app.store.people import IngestScope
from stream_app.store.repository import Store
from stream_app.store.tables import sessions

OUT_OF_SCOPE = "out-of-scope"
Origin = Mapping[str, str | None]
"""Team, domain and channel of a session."""


def origins(store: Store, session_ids: Sequence[str]) -> dict[str, Origin]:
    """Origins of those sessions that are stored and have a turn."""
    columns = [sessions.c[name] for name in IngestScope.NAMES]
    query = sa.select(sessions.c.session_id, *columns).where(
        sessions.c.session_id.in_(set(session_ids)), sessions.c.started_at.is_not(None)
    )
    with store.reading() as connection:
        return {
            row["session_id"]: {name: row[name] for name in IngestScope.NAMES}
            for row in connection.execute(query).mappings()
        }


def refusal(scope: IngestScope, event: Event, known: dict[str, Origin]) -> str | None:
    """Why the event is outside the scope; None if it is inside.

    A turn that begins a session must state what the scope limits; ``known`` then gains the session.
    The end or an outcome of an unknown session is allowed, because it changes nothing; a consent
    record is not, because it would affect whichever session takes the id.
    """
    origin = known.get(event.session_id)
    if scope.limits and origin is None and isinstance(event, Consent):
        return "this token may send a consent record only after the session's first turn"
    for name, wanted in scope.limits:
        given = _stated(event, name)
        if given not in (None, wanted):
            return f"this token may only send events of {name} {wanted}"
        if origin is not None and origin[name] != wanted:
            return (
                f"this token may only send to sessions of {name} {wanted}; use another session id"
            )
        if origin is None and isinstance(event, Turn) and given is None:
            return f"this token needs {name}: {wanted} in the turn that begins a session"
    if origin is None and isinstance(event, Turn):
        known[event.session_id] = {name: _stated(event, name) for name in IngestScope.NAMES}
    return None


def _stated(event: Event, name: str) -> str | None:
    value = getattr(event, name, None)
    return getattr(value, "value", value)
