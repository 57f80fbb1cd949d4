"""Create the first tables.

Revision: 0001
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")
AUTO_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "alerts",
        sa.Column("alert_id", sa.String(length=36), nullable=False),
        sa.Column("rule", sa.String(length=100), nullable=False),
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("bundle", sa.String(length=200), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("previous", sa.String(length=12), nullable=False),
        sa.Column("episode", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=True),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("threshold", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("alert_id", name=op.f("pk_alerts")),
    )
    op.create_index(op.f("ix_alerts_session_id"), "alerts", ["session_id"], unique=False)

    op.create_table(
        "bundles",
        sa.Column("bundle", sa.String(length=200), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("manifest", JSON, nullable=False),
        sa.Column("first_used_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("bundle", name=op.f("pk_bundles")),
    )
    op.create_table(
        "installation",
        sa.Column("name", sa.String(length=50), nullable=False),
        sa.Column("value", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_installation")),
    )
    op.create_table(
        "outbox",
        sa.Column("id", AUTO_ID, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("messages", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_index(op.f("ix_outbox_created_at"), "outbox", ["created_at"], unique=False)

    op.create_table(
        "outcomes",
        sa.Column("outcome_id", sa.String(length=200), nullable=False),
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=True),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("outcome_id", name=op.f("pk_outcomes")),
    )
    op.create_index(op.f("ix_outcomes_session_id"), "outcomes", ["session_id"], unique=False)

    op.create_table(
        "session_scores",
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("bundle", sa.String(length=200), nullable=False),
        sa.Column("status", sa.String(length=8), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_activity_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("turns", sa.Integer(), nullable=False),
        sa.Column("counsellor_turns", sa.Integer(), nullable=False),
        sa.Column("late_turns", sa.Integer(), nullable=False),
        sa.Column("withheld_turns", sa.Integer(), nullable=False),
        sa.Column("low_empathy_risk", sa.Double(), nullable=True),
        sa.Column("predicted_rating", sa.Double(), nullable=True),
        sa.Column("mechanisms", JSON, nullable=False),
        sa.Column("empathy_total_mean", sa.Double(), nullable=True),
        sa.Column("talk_share", sa.Double(), nullable=True),
        sa.Column("reflection_to_question", sa.Double(), nullable=True),
        sa.Column("complex_reflection_share", sa.Double(), nullable=True),
        sa.Column("open_question_share", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("session_id", "bundle", name=op.f("pk_session_scores")),
    )
    op.create_index(
        op.f("ix_session_scores_status_low_empathy_risk"),
        "session_scores",
        ["status", "low_empathy_risk"],
        unique=False,
    )

    op.create_table(
        "session_states",
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("bundle", sa.String(length=200), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=8), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("last_activity_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("state", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "bundle", name=op.f("pk_session_states")),
    )
    op.create_index(
        op.f("ix_session_states_bundle_status_last_activity_at"),
        "session_states",
        ["bundle", "status", "last_activity_at"],
        unique=False,
    )

    op.create_table(
        "sessions",
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("domain", sa.String(length=32), nullable=True),
        sa.Column("channel", sa.String(length=200), nullable=True),
        sa.Column("team", sa.String(length=200), nullable=True),
        sa.Column("lang", sa.String(length=35), nullable=True),
        sa.Column("consent", sa.Boolean(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_activity_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("end_reason", sa.String(length=200), nullable=True),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_sessions")),
    )
    op.create_table(
        "turn_scores",
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("stage", sa.String(length=11), nullable=False),
        sa.Column("bundle", sa.String(length=200), nullable=False),
        sa.Column("role", sa.String(length=10), nullable=False),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("late", sa.Boolean(), nullable=False),
        sa.Column("truncated", sa.Boolean(), nullable=False),
        sa.Column("emotional_reactions", sa.SmallInteger(), nullable=True),
        sa.Column("interpretations", sa.SmallInteger(), nullable=True),
        sa.Column("explorations", sa.SmallInteger(), nullable=True),
        sa.Column("empathy_total", sa.SmallInteger(), nullable=True),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("low_empathy_risk", sa.Double(), nullable=True),
        sa.Column("expressed", JSON, nullable=False),
        sa.Column("perceived", JSON, nullable=False),
        sa.Column("client", JSON, nullable=False),
        sa.Column("abstained", JSON, nullable=False),
        sa.PrimaryKeyConstraint(
            "session_id", "seq", "stage", "bundle", name=op.f("pk_turn_scores")
        ),
    )
    op.create_index(
        op.f("ix_turn_scores_occurred_at"), "turn_scores", ["occurred_at"], unique=False
    )

    op.create_table(
        "turns",
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("turn_id", sa.String(length=200), nullable=True),
        sa.Column("speaker", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=10), nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("late", sa.Boolean(), nullable=False),
        sa.Column("produced_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stored_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "seq", name=op.f("pk_turns")),
    )


def downgrade() -> None:
    op.drop_table("turns")
    op.drop_index(op.f("ix_turn_scores_occurred_at"), table_name="turn_scores")

    op.drop_table("turn_scores")
    op.drop_table("sessions")
    op.drop_index(
        op.f("ix_session_states_bundle_status_last_activity_at"), table_name="session_states"
    )

    op.drop_table("session_states")
    op.drop_index(op.f("ix_session_scores_status_low_empathy_risk"), table_name="session_scores")

    op.drop_table("session_scores")
    op.drop_index(op.f("ix_outcomes_session_id"), table_name="outcomes")

    op.drop_table("outcomes")
    op.drop_index(op.f("ix_outbox_created_at"), table_name="outbox")

    op.drop_table("outbox")
    op.drop_table("installation")
    op.drop_table("bundles")
    op.drop_index(op.f("ix_alerts_session_id"), table_name="alerts")

    op.drop_table("alerts")
