"""Who began a session through the gateway: nobody else may send its turns.

Revision: 0042
"""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("session_numbers", sa.Column("owner", sa.String(length=32), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("session_numbers") as batch:
        batch.drop_column("owner")
