"""Severity, reason, numbers, turns and the episode of an alert.

Revision: 0003
"""

import sqlalchemy as sa
from alembic import op

from stream_app.store.tables import Json

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("alerts") as table:
        table.alter_column("value", existing_type=sa.Double(), nullable=True)
        table.alter_column("threshold", existing_type=sa.Double(), nullable=True)
        table.add_column(
            sa.Column("episode_id", sa.String(length=36), nullable=False, server_default="")
        )
        table.add_column(
            sa.Column("severity", sa.String(length=8), nullable=False, server_default="warning")
        )
        table.add_column(sa.Column("labels", Json, nullable=False, server_default="{}"))
        table.add_column(sa.Column("reason", sa.Text(), nullable=False, server_default=""))
        table.add_column(sa.Column("values", Json, nullable=False, server_default="{}"))
        table.add_column(sa.Column("turns", Json, nullable=False, server_default="[]"))
    with op.batch_alter_table("alerts") as table:
        for name in ("episode_id", "severity", "labels", "reason", "values", "turns"):
            table.alter_column(name, server_default=None)


def downgrade() -> None:
    op.execute("DELETE FROM alerts WHERE value IS NULL OR threshold IS NULL")
    with op.batch_alter_table("alerts") as table:
        for name in ("turns", "values", "reason", "labels", "severity", "episode_id"):
            table.drop_column(name)
        table.alter_column("value", existing_type=sa.Double(), nullable=False)
        table.alter_column("threshold", existing_type=sa.Double(), nullable=False)
