"""Questionnaires that clients fill in: PHQ-9, GAD-7, session rating, CARE.

Revision: 0047
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None

ID = sa.String(length=200)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "questionnaires",
        sa.Column("questionnaire_id", ID, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("instrument", sa.String(length=20), nullable=False),
        sa.Column("items", JSON, nullable=False),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("questionnaire_id", name=op.f("pk_questionnaires")),
    )
    op.create_index(op.f("ix_questionnaires_session_id"), "questionnaires", ["session_id"])


def downgrade() -> None:
    op.drop_table("questionnaires")
