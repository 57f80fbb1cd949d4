"""Scores of the intents that a turn has.

Revision: 0036
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    with op.batch_alter_table("turn_scores") as table:
        table.add_column(sa.Column("intents", JSON, nullable=False, server_default="{}"))


def downgrade() -> None:
    with op.batch_alter_table("turn_scores") as table:
        table.drop_column("intents")
