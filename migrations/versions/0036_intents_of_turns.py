"""Scores of the intents that a turn has.

Revision: 0036
"""

import re

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
VIEWS = re.compile(r"^(fact|dim|shown|operations)_[a-z_]+$")


def upgrade() -> None:
    op.add_column("turn_scores", sa.Column("intents", JSON, nullable=False, server_default="{}"))


def downgrade() -> None:
    """Views over the table go first; `rapport db views` of the earlier release makes its own."""
    for view in filter(VIEWS.match, sa.inspect(op.get_bind()).get_view_names()):
        op.execute(f'DROP VIEW "{view}"')
    with op.batch_alter_table("turn_scores") as table:
        table.drop_column("intents")
