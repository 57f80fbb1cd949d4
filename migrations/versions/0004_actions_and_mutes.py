"""What people do to alerts.

Revision: 0004
"""

import sqlalchemy as sa
from alembic import op

from stream_app.store.tables import UtcDateTime

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "alert_actions",
        sa.Column("action_id", sa.String(length=36), nullable=False),
        sa.Column("episode_id", sa.String(length=36), nullable=False),
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=12), nullable=False),
        sa.Column("reason", sa.String(length=50), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("person", sa.String(length=100), nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("action_id", name=op.f("pk_alert_actions")),
    )
    op.create_index(op.f("ix_alert_actions_episode_id"), "alert_actions", ["episode_id"])
    op.create_table(
        "mutes",
        sa.Column("mute_id", sa.String(length=36), nullable=False),
        sa.Column("rule", sa.String(length=100), nullable=True),
        sa.Column("session_id", sa.String(length=200), nullable=True),
        sa.Column("team", sa.String(length=200), nullable=True),
        sa.Column("until", UtcDateTime(), nullable=False),
        sa.Column("reason", sa.String(length=50), nullable=True),
        sa.Column("person", sa.String(length=100), nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("ended_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("mute_id", name=op.f("pk_mutes")),
    )


def downgrade() -> None:
    op.drop_table("mutes")
    op.drop_table("alert_actions")
