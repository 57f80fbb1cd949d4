"""Scores of a bundle in the shadow.

Revision: 0034
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

ID = sa.String(length=200)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "shadow_bundles",
        sa.Column("bundle", ID, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("manifest", JSON, nullable=False),
        sa.Column("first_used_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("bundle", name=op.f("pk_shadow_bundles")),
    )
    op.create_table(
        "shadow_scores",
        sa.Column("session_id", ID, nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("stage", sa.String(length=11), nullable=False),
        sa.Column("bundle", ID, nullable=False),
        sa.Column("expressed", JSON, nullable=False),
        sa.Column("perceived", JSON, nullable=False),
        sa.Column("client", JSON, nullable=False),
        sa.Column("abstained", JSON, nullable=False),
        sa.PrimaryKeyConstraint(
            "session_id", "seq", "stage", "bundle", name=op.f("pk_shadow_scores")
        ),
    )


def downgrade() -> None:
    op.drop_table("shadow_scores")
    op.drop_table("shadow_bundles")
