"""Add consent records and legal holds, and mark sessions whose consent was withdrawn.

A session of an earlier release with stored turns and ``consent`` false is one whose consent was
withdrawn.

Revision: 0020
"""

import re

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

WITHDRAWN = sa.text("withdrawn")
VIEWS = re.compile(r"^(fact|dim|shown|operations)_[a-z_]+$")
"""The reporting views read the new columns; `rapport db views` makes them again."""


def upgrade() -> None:
    time = sa.DateTime(timezone=True)
    for name in ("withdrawn", "hidden"):
        op.add_column(
            "sessions", sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.false())
        )
    op.create_index(
        "ix_sessions_withdrawn",
        "sessions",
        ["withdrawn"],
        postgresql_where=WITHDRAWN,
        sqlite_where=WITHDRAWN,
    )
    sessions = sa.table(
        "sessions",
        sa.column("session_id", sa.String),
        sa.column("consent", sa.Boolean),
        sa.column("withdrawn", sa.Boolean),
    )
    turns = sa.table("turns", sa.column("session_id", sa.String))
    has_turns = sa.exists().where(turns.c.session_id == sessions.c.session_id)
    op.execute(
        sa.update(sessions)
        .where(sessions.c.consent == sa.false(), has_turns)
        .values(withdrawn=sa.true())
    )
    op.create_table(
        "consents",
        sa.Column("consent_id", sa.String(length=36), nullable=False),
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.Column("effective", sa.Boolean(), nullable=False),
        sa.Column("version", sa.String(length=50), nullable=True),
        sa.Column("source", sa.String(length=100), nullable=True),
        sa.Column("speaker", sa.String(length=64), nullable=True),
        sa.Column("seq", sa.Integer(), nullable=True),
        sa.Column("occurred_at", time, nullable=False),
        sa.Column("stored_at", time, nullable=False),
        sa.PrimaryKeyConstraint("consent_id", name=op.f("pk_consents")),
    )
    op.create_index(op.f("ix_consents_session_id"), "consents", ["session_id"])
    op.create_index(op.f("ix_consents_speaker"), "consents", ["speaker"])
    op.create_table(
        "holds",
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("reason", sa.String(length=200), nullable=False),
        sa.Column("person", sa.String(length=100), nullable=False),
        sa.Column("at", time, nullable=False),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_holds")),
    )


def downgrade() -> None:
    connection = op.get_bind()
    for view in filter(VIEWS.match, sa.inspect(connection).get_view_names()):
        op.execute(f'DROP VIEW "{view}"')
    op.drop_table("holds")
    op.drop_table("consents")
    op.drop_index("ix_sessions_withdrawn", "sessions")
    for name in ("hidden", "withdrawn"):
        op.drop_column("sessions", name)
