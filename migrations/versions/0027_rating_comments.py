"""Comments of people who rate a turn or a session, encrypted with the session's key.

Revision: 0027
"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rating_comments",
        sa.Column("comment_id", sa.String(length=36), nullable=False),
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("seq", sa.Integer()),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("person", sa.String(length=100), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("comment_id", name=op.f("pk_rating_comments")),
    )
    op.create_index(op.f("ix_rating_comments_session_id"), "rating_comments", ["session_id"])


def downgrade() -> None:
    op.drop_table("rating_comments")
