"""Reviews of sessions with answers and comments, and coaching goals.

Revision: 0029
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

KEY = sa.String(length=36)
NAME = sa.String(length=100)
ID = sa.String(length=200)
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "reviews",
        sa.Column("review_id", KEY, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("episode_id", KEY),
        sa.Column("reviewer", NAME, nullable=False),
        sa.Column("person", NAME, nullable=False),
        sa.Column("origin", sa.String(length=10), nullable=False),
        sa.Column("pair_id", KEY),
        sa.Column("scorecard", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("due_at", MOMENT, nullable=False),
        sa.Column("signed_at", MOMENT),
        sa.PrimaryKeyConstraint("review_id", name=op.f("pk_reviews")),
    )
    for columns in (["session_id"], ["pair_id"], ["reviewer", "signed_at"]):
        op.create_index(op.f(f"ix_reviews_{'_'.join(columns)}"), "reviews", columns)
    op.create_table(
        "review_answers",
        sa.Column("review_id", KEY, nullable=False),
        sa.Column("criterion", sa.String(length=50), nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("value", sa.SmallInteger(), nullable=False),
        sa.Column("auto_value", sa.SmallInteger()),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("review_id", "criterion", name=op.f("pk_review_answers")),
    )
    op.create_index(op.f("ix_review_answers_session_id"), "review_answers", ["session_id"])
    op.create_table(
        "review_comments",
        sa.Column("comment_id", KEY, nullable=False),
        sa.Column("review_id", KEY, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("person", NAME, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("comment_id", name=op.f("pk_review_comments")),
    )
    for column in ("review_id", "session_id"):
        op.create_index(op.f(f"ix_review_comments_{column}"), "review_comments", [column])
    op.create_table(
        "coaching_goals",
        sa.Column("goal_id", KEY, nullable=False),
        sa.Column("counsellor", sa.String(length=64), nullable=False),
        sa.Column("person", NAME, nullable=False),
        sa.Column("measure", sa.String(length=32), nullable=False),
        sa.Column("goal", sa.Text(), nullable=False),
        sa.Column("starts_on", sa.Date(), nullable=False),
        sa.Column("ends_on", sa.Date(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("goal_id", name=op.f("pk_coaching_goals")),
    )
    op.create_index(op.f("ix_coaching_goals_counsellor"), "coaching_goals", ["counsellor"])


def downgrade() -> None:
    for table in ("coaching_goals", "review_comments", "review_answers", "reviews"):
        op.drop_table(table)
