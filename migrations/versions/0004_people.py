"""Add accounts, acknowledgements, mutes, ratings, disputes and the audit trail.

Revision: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLES = (
    "access_tokens",
    "alert_actions",
    "audit",
    "disputes",
    "mutes",
    "people",
    "ratings",
    "sample_turns",
    "samples",
    "session_speakers",
)


def upgrade() -> None:
    op.create_table(
        "access_tokens",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("person", sa.String(length=100), nullable=False),
        sa.Column("label", sa.String(length=100), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_access_tokens")),
    )
    op.create_table(
        "alert_actions",
        sa.Column("action_id", sa.String(length=36), nullable=False),
        sa.Column("episode_id", sa.String(length=36), nullable=False),
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=12), nullable=False),
        sa.Column("reason", sa.String(length=50), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("person", sa.String(length=100), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("action_id", name=op.f("pk_alert_actions")),
    )
    op.create_index(
        op.f("ix_alert_actions_episode_id"), "alert_actions", ["episode_id"], unique=False
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("person", sa.String(length=100), nullable=False),
        sa.Column("action", sa.String(length=30), nullable=False),
        sa.Column("session_id", sa.String(length=200), nullable=True),
        sa.Column("detail", sa.String(length=500), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_session_id"), "audit", ["session_id"], unique=False)
    op.create_table(
        "disputes",
        sa.Column("dispute_id", sa.String(length=36), nullable=False),
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("head", sa.String(length=50), nullable=False),
        sa.Column("bundle", sa.String(length=200), nullable=False),
        sa.Column("value", sa.SmallInteger(), nullable=False),
        sa.Column("proposed", sa.SmallInteger(), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("person", sa.String(length=100), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decision", sa.String(length=10), nullable=True),
        sa.Column("decided_by", sa.String(length=100), nullable=True),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("dispute_id", name=op.f("pk_disputes")),
    )
    op.create_index(op.f("ix_disputes_session_id"), "disputes", ["session_id"], unique=False)
    op.create_table(
        "mutes",
        sa.Column("mute_id", sa.String(length=36), nullable=False),
        sa.Column("rule", sa.String(length=100), nullable=True),
        sa.Column("session_id", sa.String(length=200), nullable=True),
        sa.Column("team", sa.String(length=200), nullable=True),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.String(length=200), nullable=True),
        sa.Column("person", sa.String(length=100), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("mute_id", name=op.f("pk_mutes")),
    )
    op.create_table(
        "people",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("role", sa.String(length=12), nullable=False),
        sa.Column("team", sa.String(length=200), nullable=True),
        sa.Column("speaker", sa.String(length=64), nullable=True),
        sa.Column("password_hash", sa.String(length=200), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_people")),
    )
    op.create_table(
        "ratings",
        sa.Column("rating_id", sa.String(length=36), nullable=False),
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=True),
        sa.Column("head", sa.String(length=50), nullable=False),
        sa.Column("value", sa.SmallInteger(), nullable=False),
        sa.Column("sample_id", sa.String(length=36), nullable=True),
        sa.Column("person", sa.String(length=100), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("rating_id", name=op.f("pk_ratings")),
    )
    op.create_index(op.f("ix_ratings_sample_id"), "ratings", ["sample_id"], unique=False)
    op.create_index(
        op.f("ix_ratings_session_id_seq"), "ratings", ["session_id", "seq"], unique=False
    )
    op.create_table(
        "sample_turns",
        sa.Column("sample_id", sa.String(length=36), nullable=False),
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("sample_id", "place", name=op.f("pk_sample_turns")),
    )
    op.create_table(
        "samples",
        sa.Column("sample_id", sa.String(length=36), nullable=False),
        sa.Column("title", sa.String(length=100), nullable=False),
        sa.Column("bundle", sa.String(length=200), nullable=False),
        sa.Column("team", sa.String(length=200), nullable=True),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("person", sa.String(length=100), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("sample_id", name=op.f("pk_samples")),
    )
    op.create_table(
        "session_speakers",
        sa.Column("session_id", sa.String(length=200), nullable=False),
        sa.Column("speaker", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=10), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "speaker", "role", name=op.f("pk_session_speakers")),
    )
    op.create_index(
        op.f("ix_session_speakers_speaker"), "session_speakers", ["speaker"], unique=False
    )
    op.execute(
        "INSERT INTO session_speakers (session_id, speaker, role) "
        "SELECT DISTINCT session_id, speaker, role FROM turns"
    )


def downgrade() -> None:
    for table in TABLES:
        op.drop_table(table)
