"""Turns that are stored without a score, and why.

Revision: 0035
"""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("turns") as batch:
        batch.add_column(sa.Column("unscored", sa.String(length=16), nullable=True))
    with op.batch_alter_table("session_scores") as batch:
        batch.add_column(
            sa.Column("unscored_turns", sa.Integer(), nullable=False, server_default="0")
        )


def downgrade() -> None:
    with op.batch_alter_table("session_scores") as batch:
        batch.drop_column("unscored_turns")
    with op.batch_alter_table("turns") as batch:
        batch.drop_column("unscored")
