"""Receipts of erasures, and what remains to be done for them.

Revision: 0026
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "erasure_receipts",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("digest", sa.String(length=32), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("removed", JSON, nullable=False),
        sa.Column("unfinished", sa.String(length=200), nullable=True),
        sa.Column("archived", sa.Boolean(), nullable=False),
        sa.Column("receipt", JSON, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_erasure_receipts")),
    )
    for column in ("digest", "at"):
        op.create_index(op.f(f"ix_erasure_receipts_{column}"), "erasure_receipts", [column])


def downgrade() -> None:
    op.drop_table("erasure_receipts")
