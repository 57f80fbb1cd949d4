"""Find scores by their time with a BRIN index on PostgreSQL.

Rows are in the order of their time: the index finds them, and is not written per row. This once
packed the scores, too; 0044 unpacks those of databases that went through it.

Revision: 0038
"""

from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

INDEX = "ix_turn_scores_occurred_at"


def upgrade() -> None:
    _replace_index("brin")


def downgrade() -> None:
    _replace_index("btree")


def _replace_index(method: str) -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.drop_index(INDEX, table_name="turn_scores")
        op.create_index(INDEX, "turn_scores", ["occurred_at"], postgresql_using=method)
