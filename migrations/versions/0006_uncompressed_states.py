"""Store session states uncompressed on PostgreSQL: vectors do not compress, and trying costs CPU.

Revision: 0006
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _store("EXTERNAL")


def downgrade() -> None:
    _store("EXTENDED")


def _store(how: str) -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER TABLE session_states ALTER COLUMN state SET STORAGE {how}")
