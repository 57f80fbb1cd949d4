"""Store window turns separately from session state, so that the state written per batch is small.

An existing state keeps its turns until its next write.

Revision: 0008
"""

from typing import Any

import msgspec
import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

STATES_AT_A_TIME = 500


def upgrade() -> None:
    op.create_table(
        "window_turns",
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("bundle", sa.String(length=200), nullable=False),
        sa.Column("slot", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("turn", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "bundle", "slot", name=op.f("pk_window_turns")),
    )


def downgrade() -> None:
    """Move the turns back into the states, where an older release reads them."""
    connection = op.get_bind()
    last: tuple[str, str] | None = None
    while found := _states(connection, last):
        for session_id, bundle, raw in found:
            last = (session_id, bundle)
            state = msgspec.msgpack.decode(raw)
            if slots := state.pop("slots", None):
                _put_back(state, slots, _turns(connection, session_id, bundle))
                connection.execute(
                    _STATES.update()
                    .where(_STATES.c.session_id == session_id, _STATES.c.bundle == bundle)
                    .values(state=msgspec.msgpack.encode(state))
                )
    op.drop_table("window_turns")


_STATES = sa.table(
    "session_states",
    sa.column("session_id", sa.String),
    sa.column("bundle", sa.String),
    sa.column("state", sa.LargeBinary),
)
_TURNS = sa.table(
    "window_turns",
    sa.column("session_id", sa.String),
    sa.column("bundle", sa.String),
    sa.column("slot", sa.Integer),
    sa.column("turn", sa.LargeBinary),
)


def _states(connection: sa.Connection, last: tuple[str, str] | None) -> list[Any]:
    key = sa.tuple_(_STATES.c.session_id, _STATES.c.bundle)
    query = sa.select(_STATES).order_by(_STATES.c.session_id, _STATES.c.bundle)
    if last is not None:
        query = query.where(key > sa.tuple_(*map(sa.literal, last)))
    return list(connection.execute(query.limit(STATES_AT_A_TIME)))


def _turns(connection: sa.Connection, session_id: str, bundle: str) -> dict[int, Any]:
    query = sa.select(_TURNS.c.slot, _TURNS.c.turn).where(
        _TURNS.c.session_id == session_id, _TURNS.c.bundle == bundle
    )
    return {slot: msgspec.msgpack.decode(turn) for slot, turn in connection.execute(query)}


def _put_back(state: dict[str, Any], slots: dict[int, int], turns: dict[int, Any]) -> None:
    window = state["window"]
    held = [turns[slot] for _, slot in sorted(slots.items()) if slot in turns]
    window["history"] = [turn for turn in held if turn["seq"] < window["next_seq"]]
    window["waiting"] = {turn["seq"]: turn for turn in held if turn["seq"] >= window["next_seq"]}
