"""The target of a coaching goal: the mean of its measure that the two agreed on.

Revision: 0043
"""

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("coaching_goals", sa.Column("target", sa.Double(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("coaching_goals") as batch:
        batch.drop_column("target")
