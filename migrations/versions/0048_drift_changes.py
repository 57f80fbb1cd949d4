"""Changes of the data or the model that a check found.

Revision: 0048
"""

import sqlalchemy as sa
from alembic import op

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "drift_changes",
        sa.Column("change_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("measure", sa.String(length=200), nullable=False),
        sa.Column("about", sa.String(length=200), nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("found_at", MOMENT, nullable=False),
        sa.Column("acknowledged_at", MOMENT, nullable=True),
        sa.Column("person", sa.String(length=100), nullable=True),
        sa.PrimaryKeyConstraint("change_id", name=op.f("pk_drift_changes")),
    )


def downgrade() -> None:
    op.drop_table("drift_changes")
