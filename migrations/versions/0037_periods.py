"""Updates in place: no index on what changes with every turn, and room for new versions of rows.

Indexes on exact times become indexes on periods. Stop the workers of the earlier release: they
cannot read the states that newer ones write, which a downgrade therefore deletes.

Revision: 0037
"""

import re

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

VIEWS = re.compile(r"^(fact|dim|shown|operations)_[a-z_]+$")
"""SQLite copies a table to drop a column; views over it go first."""
FILL_FACTORS = {"sessions": 60, "session_states": 50, "session_scores": 50, "window_turns": 50}
INDEXES = (
    ("session_states", ("bundle", "status", "seen_at"), ("bundle", "status", "seen_period")),
    ("session_scores", ("status", "low_empathy_risk"), ("status",)),
    ("session_scores", ("last_activity_at", "session_id"), ("activity_hour", "session_id")),
)
PERIODS = (
    ("session_states", "seen_at", "seen_period", 600),
    ("session_scores", "last_activity_at", "activity_hour", 3600),
)


def upgrade() -> None:
    server = op.get_bind().dialect.name == "postgresql"
    for table, column, period, seconds in PERIODS:
        op.add_column(table, sa.Column(period, sa.Integer(), nullable=True))
        since = f"extract(epoch FROM {column})" if server else f"strftime('%s', {column})"
        whole = f"floor({since} / {seconds})" if server else f"{since} / {seconds}"
        op.execute(f"UPDATE {table} SET {period} = CAST({whole} AS integer)")  # noqa: S608  # names of ours
    for table, old, new in INDEXES:
        _replace_index(table, old, new)
    if server:
        for table, percent in FILL_FACTORS.items():
            op.execute(f"ALTER TABLE {table} SET (fillfactor = {percent})")
        op.execute("ALTER TABLE session_states SET (toast_tuple_target = 4080)")
        op.execute("ALTER TABLE outbox ALTER COLUMN messages SET STORAGE EXTERNAL")


def downgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        for table in FILL_FACTORS:
            op.execute(f"ALTER TABLE {table} RESET (fillfactor)")
        op.execute("ALTER TABLE session_states RESET (toast_tuple_target)")
        op.execute("ALTER TABLE outbox ALTER COLUMN messages SET STORAGE EXTENDED")
    for table in ("session_states", "window_turns", "outbox"):
        op.execute(f"DELETE FROM {table}")  # noqa: S608  # names of ours
    for table, old, new in INDEXES:
        _replace_index(table, new, old)
    for view in filter(VIEWS.match, sa.inspect(connection).get_view_names()):
        op.execute(f'DROP VIEW "{view}"')
    for table, _, period, _ in PERIODS:
        with op.batch_alter_table(table) as batch:
            batch.drop_column(period)


def _replace_index(table: str, old: tuple[str, ...], new: tuple[str, ...]) -> None:
    op.drop_index(op.f(_name(table, old)), table_name=table)
    op.create_index(op.f(_name(table, new)), table, list(new))


def _name(table: str, columns: tuple[str, ...]) -> str:
    return f"ix_{table}_{'_'.join(columns)}"
