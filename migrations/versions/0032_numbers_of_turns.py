"""Numbers that the gateway gives to turns, and idempotency keys of its requests.

Revision: 0032
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "session_numbers",
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("next_seq", sa.BigInteger(), nullable=True),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_session_numbers")),
    )
    op.create_table(
        "ingest_keys",
        sa.Column("digest", sa.String(length=32), nullable=False),
        sa.Column("fingerprint", sa.String(length=32), nullable=False),
        sa.Column("results", JSON, nullable=False),
        sa.Column("busy_until", MOMENT, nullable=True),
        sa.Column("answered", sa.Boolean(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_ingest_keys")),
    )
    op.create_index(op.f("ix_ingest_keys_at"), "ingest_keys", ["at"])


def downgrade() -> None:
    op.drop_table("ingest_keys")
    op.drop_table("session_numbers")
