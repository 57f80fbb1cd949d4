"""Purposes that a consent record includes.

Revision: 0033
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    with op.batch_alter_table("consents") as table:
        table.add_column(sa.Column("purposes", JSON, nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("consents") as table:
        table.drop_column("purposes")
