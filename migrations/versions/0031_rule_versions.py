"""Versions of the alert rules and their adoptions.

Revision: 0031
"""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAME = sa.String(length=100)
REASON = sa.String(length=500)
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "rule_versions",
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=16), nullable=False),
        sa.Column("person", NAME, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("reason", REASON, nullable=False),
        sa.PrimaryKeyConstraint("version", name=op.f("pk_rule_versions")),
    )
    op.create_table(
        "rule_adoptions",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("person", NAME, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("reason", REASON, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rule_adoptions")),
    )


def downgrade() -> None:
    op.drop_table("rule_adoptions")
    op.drop_table("rule_versions")
