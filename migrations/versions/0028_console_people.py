"""Initial passwords, the introduction of the console, pins and presence.

Accounts that exist have seen the console: they get no introduction.

Revision: 0028
"""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

NAME = sa.String(length=100)
ID = sa.String(length=200)
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column(
        "people",
        sa.Column("initial_password", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.add_column("people", sa.Column("toured_at", MOMENT))
    op.execute("UPDATE people SET toured_at = CURRENT_TIMESTAMP")
    op.create_table(
        "pins",
        sa.Column("person", NAME, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("person", "session_id", name=op.f("pk_pins")),
    )
    op.create_table(
        "presence",
        sa.Column("session_id", ID, nullable=False),
        sa.Column("person", NAME, nullable=False),
        sa.Column("seen_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "person", name=op.f("pk_presence")),
    )


def downgrade() -> None:
    op.drop_table("presence")
    op.drop_table("pins")
    op.drop_column("people", "toured_at")
    op.drop_column("people", "initial_password")
