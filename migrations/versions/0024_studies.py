"""Approved studies, whose accounts may export text until a date.

Revision: 0024
"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "studies",
        sa.Column("study_id", sa.String(length=200), nullable=False),
        sa.Column("person", sa.String(length=100), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("study_id", "person", name=op.f("pk_studies")),
    )


def downgrade() -> None:
    op.drop_table("studies")
