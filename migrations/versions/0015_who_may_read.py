"""Which counsellors may read a session, and which sessions a token may send events for.

The first counsellor of a session may read it, and those it is assigned to. Counsellors of sessions
before this revision keep their access, and tokens remain without limits.

Revision: 0015
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None
LIMITS = ("team", "domain", "channel")


def upgrade() -> None:
    with op.batch_alter_table("session_speakers") as table:
        table.add_column(sa.Column("reads", sa.Boolean(), nullable=False, server_default=sa.true()))
    op.create_table(
        "session_assignments",
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("speaker", sa.String(length=64), nullable=False),
        sa.Column("person", sa.String(length=100), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "speaker", name=op.f("pk_session_assignments")),
    )
    op.create_index(op.f("ix_session_assignments_speaker"), "session_assignments", ["speaker"])
    with op.batch_alter_table("access_tokens") as table:
        for name in LIMITS:
            table.add_column(sa.Column(name, sa.String(length=200)))


def downgrade() -> None:
    with op.batch_alter_table("access_tokens") as table:
        for name in LIMITS:
            table.drop_column(name)
    op.drop_table("session_assignments")
    with op.batch_alter_table("session_speakers") as table:
        table.drop_column("reads")
