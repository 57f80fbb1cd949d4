"""Nothing: this once read packed scores faster on PostgreSQL.

Scores are JSON again; 0044 unpacks those of databases that went through it.

Revision: 0041
"""

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Leave the scores as they are."""


def downgrade() -> None:
    """Leave the scores as they are."""
