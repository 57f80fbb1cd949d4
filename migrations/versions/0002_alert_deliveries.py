"""Add deliveries of alerts to notification targets; drop the outbox's time index.

Revision: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "notification_targets",
        sa.Column("target", sa.String(length=100), nullable=False),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("target", name=op.f("pk_notification_targets")),
    )
    op.create_table(
        "deliveries",
        sa.Column("alert_id", sa.String(length=36), nullable=False),
        sa.Column("target", sa.String(length=100), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("tried_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("problem", sa.String(length=200), nullable=True),
        sa.PrimaryKeyConstraint("alert_id", "target", name=op.f("pk_deliveries")),
    )
    op.drop_index(op.f("ix_outbox_created_at"), table_name="outbox")


def downgrade() -> None:
    op.create_index(op.f("ix_outbox_created_at"), "outbox", ["created_at"], unique=False)
    op.drop_table("deliveries")
    op.drop_table("notification_targets")
