"""Answers of a language model to questions of scorecards, as proposals.

Revision: 0045
"""

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "proposals",
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("question_key", sa.String(length=64), nullable=False),
        sa.Column("model", sa.String(length=100), nullable=False),
        sa.Column("question", sa.String(length=300), nullable=False),
        sa.Column("answer", sa.String(length=300)),
        sa.Column("value", sa.SmallInteger()),
        sa.Column("seq", sa.Integer()),
        sa.Column("quote_start", sa.Integer()),
        sa.Column("quote_end", sa.Integer()),
        sa.Column("dropped", sa.String(length=20)),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "question_key", "model", name=op.f("pk_proposals")),
    )


def downgrade() -> None:
    op.drop_table("proposals")
