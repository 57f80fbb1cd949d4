"""Up to where the log is in the database, written with what was read.

A database that holds sessions already has been filled without it: there the group's own offsets
are taken over, partition by partition.

Revision: 0012
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "log_positions",
        sa.Column("consumer_group", sa.String(length=255), nullable=False),
        sa.Column("topic", sa.String(length=255), nullable=False),
        sa.Column("partition", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("next_offset", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint(
            "consumer_group", "topic", "partition", name=op.f("pk_log_positions")
        ),
    )
    op.execute(
        "INSERT INTO installation (name, value) "
        "SELECT 'log_positions', 'take over' WHERE EXISTS (SELECT 1 FROM sessions)"
    )


def downgrade() -> None:
    op.execute("DELETE FROM installation WHERE name = 'log_positions'")
    op.drop_table("log_positions")
