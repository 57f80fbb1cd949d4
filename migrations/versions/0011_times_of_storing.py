"""When sessions were last heard of, by a clock that no producer sets.

Idleness and retention rest on it; `wake_at` is by that clock, too. Sessions that are stored take
the time at which their last turn was.

Revision: 0011
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_HAS_TEXT = sa.text("text IS NOT NULL")
_LAST = """
UPDATE {table} SET {column} = coalesce(
  (SELECT max(turns.stored_at) FROM turns WHERE turns.session_id = {table}.session_id),
  CURRENT_TIMESTAMP
)
"""


def upgrade() -> None:
    for table, column in (("sessions", "stored_at"), ("session_states", "seen_at")):
        op.add_column(table, sa.Column(column, sa.DateTime(timezone=True), nullable=True))
        op.execute(_LAST.format(table=table, column=column))
    op.drop_index(op.f("ix_session_states_bundle_status_last_activity_at"), "session_states")
    op.create_index(
        op.f("ix_session_states_bundle_status_seen_at"),
        "session_states",
        ["bundle", "status", "seen_at"],
    )
    _turns_by("occurred_at", "stored_at")


def downgrade() -> None:
    _turns_by("stored_at", "occurred_at")
    op.drop_index(op.f("ix_session_states_bundle_status_seen_at"), "session_states")
    op.create_index(
        op.f("ix_session_states_bundle_status_last_activity_at"),
        "session_states",
        ["bundle", "status", "last_activity_at"],
    )
    op.drop_column("session_states", "seen_at")
    op.drop_column("sessions", "stored_at")


def _turns_by(old: str, new: str) -> None:
    op.drop_index(op.f(f"ix_turns_{old}"), table_name="turns")
    op.create_index(
        op.f(f"ix_turns_{new}"),
        "turns",
        [new],
        postgresql_where=_HAS_TEXT,
        sqlite_where=_HAS_TEXT,
    )
