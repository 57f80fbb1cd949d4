"""Roll-ups of turns, and indexes for lists of sessions by time, team, alert and counsellor.

Ended sessions are marked, so that the next update of the roll-ups counts their turns.

Revision: 0025
"""

import re

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

ID = sa.String(length=200)
BINS = 19
MECHANISMS = ("emotional_reactions", "interpretations", "explorations")
PERCEIVED = ("engagement", "understanding", "sympathy", "helpfulness")
SUMS = (
    "turns",
    "late",
    "truncated",
    "confidence",
    "words_n",
    "words",
    *(f"words_{number}" for number in range(BINS)),
    *(
        f"{mechanism}_{part}"
        for mechanism in MECHANISMS
        for part in ("n", "total", "abstained", "level_0", "level_1", "level_2")
    ),
    *(f"{head}_{part}" for head in PERCEIVED for part in ("n", "total", "abstained")),
)
INDEXES = {
    "session_scores": (("started_at", "session_id"), ("last_activity_at", "session_id")),
    "sessions": (("team",),),
    "session_speakers": (("role", "speaker"),),
    "archived_sessions": (("team",),),
    "alerts": (("rule",),),
    "rollup_means": (("kind", "measure", "start"),),
}
VIEWS = re.compile(r"^(fact|dim|shown|operations)_[a-z_]+$")


def upgrade() -> None:
    _create_table("rollup_turns", ("session_id", "bundle", "role"), ("session_id", ID))
    days = ("day", "bundle", "team", "domain", "channel", "lang", "role")
    _create_table("rollup_turn_days", days, ("sessions", sa.Integer()))
    for table, indexes in INDEXES.items():
        for columns in indexes:
            op.create_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table, list(columns))
    hidden = sa.text("hidden")
    op.create_index(
        op.f("ix_sessions_hidden_session_id"),
        "sessions",
        ["hidden", "session_id"],
        postgresql_where=hidden,
        sqlite_where=hidden,
    )
    op.execute(
        "INSERT INTO rollup_marks (session_id) SELECT DISTINCT session_id FROM session_scores "
        "WHERE status <> 'open'"
    )


def downgrade() -> None:
    """Views over the tables go first; `rapport db views` of the earlier release makes its own."""
    inspector = sa.inspect(op.get_bind())
    for view in filter(VIEWS.match, inspector.get_view_names()):
        op.execute(f'DROP VIEW "{view}"')
    for table, indexes in INDEXES.items():
        for columns in indexes:
            op.drop_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table_name=table)
    op.drop_index(op.f("ix_sessions_hidden_session_id"), table_name="sessions")
    for table in ("rollup_turn_days", "rollup_turns"):
        op.drop_index(op.f(f"ix_{table}_month"), table_name=table)
        op.drop_table(table)


def _create_table(
    name: str, keys: tuple[str, ...], more: tuple[str, sa.types.TypeEngine[object]]
) -> None:
    op.create_table(
        name,
        sa.Column(*more, nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("bundle", ID, nullable=False),
        sa.Column("team", ID, nullable=False),
        sa.Column("domain", sa.String(length=32), nullable=False),
        sa.Column("channel", ID, nullable=False),
        sa.Column("lang", sa.String(length=35), nullable=False),
        sa.Column("role", sa.String(length=10), nullable=False),
        sa.Column("month", sa.Date(), nullable=False),
        *(sa.Column(each, sa.BigInteger(), nullable=False) for each in SUMS),
        sa.PrimaryKeyConstraint(*keys, name=op.f(f"pk_{name}")),
    )
    op.create_index(op.f(f"ix_{name}_month"), name, ["month"])
