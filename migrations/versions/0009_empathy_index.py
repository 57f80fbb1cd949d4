"""Add the empathy index of a session, and predicted outcomes by name.

`predicted_rating` was never filled and is dropped. Scores of earlier bundles keep their risk, which
had another definition; rows name their bundle.

Revision: 0009
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_NUMBERS = (
    "empathy_index",
    "empathy_low",
    "empathy_high",
    "empathy_percentile",
    "answered_share",
)
_DOCUMENTS = ("missed_opportunities", "outcome_risks")


def upgrade() -> None:
    json = sa.JSON().with_variant(JSONB(), "postgresql")
    with op.batch_alter_table("session_scores") as table:
        table.drop_column("predicted_rating")
        for name in _NUMBERS:
            table.add_column(sa.Column(name, sa.Double(), nullable=True))
        for name in _DOCUMENTS:
            table.add_column(sa.Column(name, json, nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("session_scores") as table:
        for name in (*_NUMBERS, *_DOCUMENTS):
            table.drop_column(name)
        table.add_column(sa.Column("predicted_rating", sa.Double(), nullable=True))
