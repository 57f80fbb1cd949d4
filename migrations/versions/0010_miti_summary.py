"""The MITI summary of sessions of motivational interviewing.

Revision: 0010
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    json = sa.JSON().with_variant(JSONB(), "postgresql")
    with op.batch_alter_table("session_scores") as table:
        table.add_column(sa.Column("miti", json, nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("session_scores") as table:
        table.drop_column("miti")
