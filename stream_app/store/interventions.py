"""What people did to alerts, as far as notifications care: mutes, acknowledgements, resolutions.

The tables belong to the console; this is the one place where notifications read them.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection

from stream_app.store.tables import alert_actions, mutes

_TAKEN: Final = ("acknowledge", "resolve")


class Subject(Protocol):
    """What is asked about an alert."""

    @property
    def episode_id(self) -> str:
        """The alert as people see it."""

    @property
    def rule(self) -> str:
        """Its rule."""

    @property
    def session_id(self) -> str:
        """Its session."""

    @property
    def team(self) -> str | None:
        """The session's team."""


class Intervention(Struct, frozen=True):
    """Why nobody has to be told; ``reason`` is the code that was chosen, never what was written."""

    muted: bool
    reason: str


def interventions(
    connection: Connection, subjects: Sequence[Subject], now: datetime
) -> dict[str, Intervention]:
    """By episode: the ones that are muted at ``now``, or that somebody has taken on."""
    if not subjects:
        return {}
    in_force = sa.select(mutes).where(
        mutes.c.at <= now,
        mutes.c.until > now,
        mutes.c.ended_at.is_(None) | (mutes.c.ended_at > now),
    )
    found: dict[str, Intervention] = {}
    for mute in connection.execute(in_force).all():
        for subject in subjects:
            if all(
                wanted is None or wanted == actual
                for wanted, actual in (
                    (mute.rule, subject.rule),
                    (mute.session_id, subject.session_id),
                    (mute.team, subject.team),
                )
            ):
                found[subject.episode_id] = Intervention(True, "muted")
    taken = sa.select(alert_actions).where(
        alert_actions.c.kind.in_(_TAKEN),
        alert_actions.c.at <= now,
        alert_actions.c.episode_id.in_({subject.episode_id for subject in subjects}),
    )
    for action in connection.execute(taken).all():
        done = "acknowledged" if action.kind == "acknowledge" else "resolved by hand"
        found.setdefault(action.episode_id, Intervention(False, _worded(done, action.reason)))
    return found


def _worded(done: str, reason: str | None) -> str:
    return f"{done}: {reason}" if reason else done
