"""The sessions whose facts are in the archive.

Revision: 0022
"""

import re

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

ID = sa.String(length=200)
TIME = sa.DateTime(timezone=True)
VIEWS = re.compile(r"^(fact|dim|shown|operations)_[a-z_]+$")


def upgrade() -> None:
    op.create_table(
        "archived_sessions",
        sa.Column("session_id", ID, nullable=False),
        sa.Column("month", sa.Date(), nullable=False),
        sa.Column("team", ID, nullable=True),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("stored_at", TIME, nullable=False),
        sa.Column("archived_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_archived_sessions")),
    )
    op.create_index(op.f("ix_archived_sessions_month"), "archived_sessions", ["month"])


def downgrade() -> None:
    """Views over the table go first; `rapport db views` of the earlier release makes its own."""
    inspector = sa.inspect(op.get_bind())
    for view in filter(VIEWS.match, inspector.get_view_names()):
        op.execute(f'DROP VIEW "{view}"')
    op.drop_index(op.f("ix_archived_sessions_month"), table_name="archived_sessions")
    op.drop_table("archived_sessions")
