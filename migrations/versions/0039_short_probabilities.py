"""Nothing: this once shortened packed scores on PostgreSQL.

Scores are JSON again; 0044 unpacks those of databases that went through it.

Revision: 0039
"""

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Leave the scores as they are."""


def downgrade() -> None:
    """Leave the scores as they are."""
