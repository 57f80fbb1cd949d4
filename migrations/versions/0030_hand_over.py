"""Interventions in running sessions, escalations of alerts, and protocol texts of rules.

Revision: 0030
"""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

NAME = sa.String(length=100)
UUID = sa.String(length=36)
ID = sa.String(length=200)
MOMENT = sa.DateTime(timezone=True)
UNPUBLISHED = sa.text("published_at IS NULL")


def upgrade() -> None:
    op.add_column("alerts", sa.Column("protocol", sa.Text()))
    op.create_table(
        "interventions",
        sa.Column("intervention_id", UUID, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("kind", sa.String(length=12), nullable=False),
        sa.Column("text", sa.Text()),
        sa.Column("episode_id", UUID),
        sa.Column("person", NAME, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("published_at", MOMENT),
        sa.Column("received_by", NAME),
        sa.Column("received_at", MOMENT),
        sa.PrimaryKeyConstraint("intervention_id", name=op.f("pk_interventions")),
    )
    op.create_index(op.f("ix_interventions_session_id_at"), "interventions", ["session_id", "at"])
    op.create_index(
        op.f("ix_interventions_published_at"),
        "interventions",
        ["published_at"],
        postgresql_where=UNPUBLISHED,
        sqlite_where=UNPUBLISHED,
    )
    op.create_table(
        "escalations",
        sa.Column("alert_id", UUID, nullable=False),
        sa.Column("step", sa.SmallInteger(), nullable=False, autoincrement=False),
        sa.Column("recipient", NAME, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("due_at", MOMENT, nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("target", NAME),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("tried_at", MOMENT),
        sa.Column("problem", sa.String(length=200)),
        sa.PrimaryKeyConstraint("alert_id", "step", "recipient", name=op.f("pk_escalations")),
    )
    op.create_index(op.f("ix_escalations_session_id"), "escalations", ["session_id"])
    op.create_index(op.f("ix_escalations_state_due_at"), "escalations", ["state", "due_at"])


def downgrade() -> None:
    op.drop_table("escalations")
    op.drop_table("interventions")
    op.drop_column("alerts", "protocol")
