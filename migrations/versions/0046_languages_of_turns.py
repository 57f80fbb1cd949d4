"""The language of a turn that has no score for it.

Revision: 0046
"""

import re

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None

VIEWS = re.compile(r"^(fact|dim|shown|operations)_[a-z_]+$")
"""SQLite replaces the table below them; `rapport db views` makes them again."""


def upgrade() -> None:
    op.add_column("turns", sa.Column("language", sa.String(35), nullable=True))


def downgrade() -> None:
    for view in filter(VIEWS.match, sa.inspect(op.get_bind()).get_view_names()):
        op.execute(f'DROP VIEW "{view}"')
    with op.batch_alter_table("turns") as batch:
        batch.drop_column("language")
