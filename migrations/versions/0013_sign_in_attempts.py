"""Refused sign-ins are counted for all web processes together; keys are keyed digests.

Revision: 0013
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sign_in_attempts",
        sa.Column("digest", sa.String(length=32), nullable=False),
        sa.Column("refused", sa.Integer(), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("succeeded_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_sign_in_attempts")),
    )


def downgrade() -> None:
    op.drop_table("sign_in_attempts")
