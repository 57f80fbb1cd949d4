"""Add the rule and reason of alerts, the due time of timed rules, and baselines.

Existing alerts get their episode's id, computed as the service does, and the severity `warning`.

Revision: 0003
"""

import uuid

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")

EPISODES = uuid.uuid5(uuid.NAMESPACE_URL, "urn:rapport:alert-episode")
NEW = ("episode_id", "severity", "labels", "reason", "values", "turns", "rules_digest")


def upgrade() -> None:
    with op.batch_alter_table("alerts") as alerts:
        alerts.add_column(sa.Column("episode_id", sa.String(length=36)))
        alerts.add_column(sa.Column("severity", sa.String(length=8)))
        alerts.add_column(sa.Column("labels", JSON))
        alerts.add_column(sa.Column("reason", sa.Text()))
        alerts.add_column(sa.Column("values", JSON))
        alerts.add_column(sa.Column("turns", JSON))
        alerts.add_column(sa.Column("rules_digest", sa.String(length=16)))
    _fill()
    with op.batch_alter_table("alerts") as alerts:
        for name in NEW:
            alerts.alter_column(name, nullable=False)
        alerts.alter_column("value", existing_type=sa.Double(), nullable=True)
        alerts.alter_column("threshold", existing_type=sa.Double(), nullable=True)
        alerts.create_index(op.f("ix_alerts_episode_id"), ["episode_id"], unique=False)
    op.add_column("session_states", sa.Column("wake_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index(
        op.f("ix_session_states_bundle_wake_at"),
        "session_states",
        ["bundle", "wake_at"],
        unique=False,
    )
    op.create_table(
        "baselines",
        sa.Column("scope", sa.String(length=10), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("bundle", sa.String(length=200), nullable=False),
        sa.Column("measure", sa.String(length=10), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("mean", sa.Double(), nullable=False),
        sa.Column("sd", sa.Double(), nullable=False),
        sa.Column("as_of", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("scope", "key", "bundle", "measure", name=op.f("pk_baselines")),
    )


def downgrade() -> None:
    op.drop_table("baselines")
    op.drop_index(op.f("ix_session_states_bundle_wake_at"), table_name="session_states")
    with op.batch_alter_table("session_states") as states:
        states.drop_column("wake_at")
    alerts = sa.table("alerts", sa.column("value"), sa.column("threshold"))
    # An older release cannot read alerts without a value and a threshold.
    op.execute(sa.delete(alerts).where(alerts.c.value.is_(None) | alerts.c.threshold.is_(None)))
    op.drop_index(op.f("ix_alerts_episode_id"), table_name="alerts")
    with op.batch_alter_table("alerts") as changed:
        changed.alter_column("threshold", existing_type=sa.Double(), nullable=False)
        changed.alter_column("value", existing_type=sa.Double(), nullable=False)
        for name in reversed(NEW):
            changed.drop_column(name)


def _fill() -> None:
    names = ("alert_id", "session_id", "bundle", "rule", "episode", *NEW)
    typed = {"labels": JSON, "values": JSON, "turns": JSON}
    alerts = sa.table("alerts", *(sa.column(name, typed.get(name)) for name in names))
    identity = (alerts.c.session_id, alerts.c.bundle, alerts.c.rule, alerts.c.episode)
    connection = op.get_bind()
    for key in connection.execute(sa.select(*identity).distinct()).all():
        connection.execute(
            sa.update(alerts)
            .where(*(column == value for column, value in zip(identity, key, strict=True)))
            .values(
                episode_id=str(uuid.uuid5(EPISODES, "\0".join(map(str, key)))),
                severity="warning",
                labels={},
                reason="Raised by an earlier release.",
                values={},
                turns=[],
                rules_digest="",
            )
        )
