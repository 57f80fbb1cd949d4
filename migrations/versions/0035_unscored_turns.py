"""Turns that are stored without a score, and why.

Revision: 0035
"""

import re

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

VIEWS = re.compile(r"^(fact|dim|shown|operations)_[a-z_]+$")
"""The reporting views read the new column; `rapport db views` makes them again."""


def upgrade() -> None:
    with op.batch_alter_table("turns") as batch:
        batch.add_column(sa.Column("unscored", sa.String(length=16), nullable=True))
    with op.batch_alter_table("session_scores") as batch:
        batch.add_column(
            sa.Column("unscored_turns", sa.Integer(), nullable=False, server_default="0")
        )


def downgrade() -> None:
    connection = op.get_bind()
    for view in filter(VIEWS.match, sa.inspect(connection).get_view_names()):
        op.execute(f'DROP VIEW "{view}"')
    with op.batch_alter_table("session_scores") as batch:
        batch.drop_column("unscored_turns")
    with op.batch_alter_table("turns") as batch:
        batch.drop_column("unscored")
