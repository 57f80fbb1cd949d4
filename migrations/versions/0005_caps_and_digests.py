"""Add hourly caps and digests of notification targets.

A delivery that has reached its target is called `delivered` from here on; `acknowledged` now means
that a person acknowledged the alert before it was sent.

Revision: 0005
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("deliveries", sa.Column("held_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("deliveries", sa.Column("notification_id", sa.String(length=36), nullable=True))
    op.add_column("deliveries", sa.Column("slot_at", sa.DateTime(timezone=True), nullable=True))
    op.execute("UPDATE deliveries SET state = 'delivered' WHERE state = 'acknowledged'")
    op.create_index(op.f("ix_deliveries_target_slot_at"), "deliveries", ["target", "slot_at"])
    op.create_index(op.f("ix_deliveries_target_state"), "deliveries", ["target", "state"])


def downgrade() -> None:
    op.drop_index(op.f("ix_deliveries_target_state"), table_name="deliveries")
    op.drop_index(op.f("ix_deliveries_target_slot_at"), table_name="deliveries")
    op.execute(
        "UPDATE deliveries SET state = 'acknowledged' "
        "WHERE state IN ('delivered', 'digested', 'filtered', 'muted')"
    )
    op.execute("UPDATE deliveries SET state = 'due' WHERE state = 'held'")
    op.drop_column("deliveries", "slot_at")
    op.drop_column("deliveries", "notification_id")
    op.drop_column("deliveries", "held_at")
