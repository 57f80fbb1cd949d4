"""Saved views: filters of the past-sessions page, by person.

Revision: 0021
"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "saved_views",
        sa.Column("person", sa.String(length=100), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("query", sa.String(length=2000), nullable=False),
        sa.Column("counsellor", sa.String(length=64)),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("person", "name", name=op.f("pk_saved_views")),
    )


def downgrade() -> None:
    op.drop_table("saved_views")
