"""Suppressions of notifications: mutes, acknowledgements and manual resolutions.

The console writes these tables; notifications read them only through this module.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection

from stream_app.store.database.tables import alert_actions, mutes

_SUPPRESSING: Final = ("acknowledge", "resolve")


class AlertKey(Protocol):
    """The attributes of an alert that a suppression can match."""

    @property
    def episode_id(self) -> str:
        """Id of the alert."""

    @property
    def rule(self) -> str:
        """Its rule."""

    @property
    def session_id(self) -> str:
        """Its session."""

    @property
    def team(self) -> str | None:
        """The session's team."""


class Suppression(Struct, frozen=True):
    """Why a notification is suppressed; ``reason``: the chosen code, never free text."""

    muted: bool
    reason: str


def find_suppressions(
    connection: Connection, candidates: Sequence[AlertKey], now: datetime
) -> dict[str, Suppression]:
    """Find by episode alerts muted at ``now``, or acknowledged or resolved by a person."""
    if not candidates:
        return {}
    in_force = sa.select(mutes).where(
        mutes.c.at <= now,
        mutes.c.until > now,
        mutes.c.ended_at.is_(None) | (mutes.c.ended_at > now),
    )
    found: dict[str, Suppression] = {}
    for mute in connection.execute(in_force).all():
        for alert in candidates:
            if all(
                wanted is None or wanted == actual
                for wanted, actual in (
                    (mute.rule, alert.rule),
                    (mute.session_id, alert.session_id),
                    (mute.team, alert.team),
                )
            ):
                found[alert.episode_id] = Suppression(True, "muted")
    handled = sa.select(alert_actions).where(
        alert_actions.c.kind.in_(_SUPPRESSING),
        alert_actions.c.at <= now,
        alert_actions.c.episode_id.in_({alert.episode_id for alert in candidates}),
    )
    for action in connection.execute(handled).all():
        done = "acknowledged" if action.kind == "acknowledge" else "resolved manually"
        found.setdefault(action.episode_id, Suppression(False, _with_reason(done, action.reason)))
    return found


def _with_reason(done: str, reason: str | None) -> str:
    return f"{done}: {reason}" if reason else done
