"""What is said in a session is encrypted with the session's own key.

Texts that are stored stay as they are until `rapport keys encrypt`. A downgrade destroys the keys,
and with them the texts that were encrypted.

Revision: 0014
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_MARK = "\ufdd0"
_SEALED_TEXTS = (
    ("turns", "text"),
    ("sessions", "end_reason"),
    ("alert_actions", "note"),
    ("mutes", "reason"),
    ("disputes", "answer"),
)


def upgrade() -> None:
    op.create_table(
        "session_keys",
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("master_key", sa.String(length=16), nullable=False),
        sa.Column("wrapped", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_session_keys")),
    )
    op.add_column("turns", sa.Column("chars", sa.Integer(), nullable=True))
    for table, column in (("sessions", "end_reason"), ("mutes", "reason")):
        with op.batch_alter_table(table) as batch:
            batch.alter_column(column, existing_type=sa.String(length=200), type_=sa.Text())


def downgrade() -> None:
    for table, column in _SEALED_TEXTS:
        op.execute(
            sa.text(f"UPDATE {table} SET {column} = NULL WHERE {column} LIKE :sealed").bindparams(  # noqa: S608  # names of ours
                sealed=f"{_MARK}%"
            )
        )
    op.execute(
        sa.text("UPDATE disputes SET note = '' WHERE note LIKE :sealed").bindparams(
            sealed=f"{_MARK}%"
        )
    )
    op.execute("DELETE FROM session_states")
    op.execute("DELETE FROM window_turns")
    for table, column in (("sessions", "end_reason"), ("mutes", "reason")):
        with op.batch_alter_table(table) as batch:
            batch.alter_column(column, existing_type=sa.Text(), type_=sa.String(length=200))
    op.drop_column("turns", "chars")
    op.drop_table("session_keys")
