"""Record erased sessions, so that they are not restored from the log; index texts by age.

Revision: 0007
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "erasures",
        sa.Column("digest", sa.String(length=32), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_erasures")),
    )
    has_text = sa.text("text IS NOT NULL")
    op.create_index(
        op.f("ix_turns_occurred_at"),
        "turns",
        ["occurred_at"],
        postgresql_where=has_text,
        sqlite_where=has_text,
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_turns_occurred_at"), table_name="turns")
    op.drop_table("erasures")
