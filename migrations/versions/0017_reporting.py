"""Roll-ups, a turn's number of words, and roles that may only read.

On PostgreSQL two roles without a login are made, unless they exist or the migrating role may not:
one for the reporting views, one (``…_aggregates``) for those views alone that hide small cells. The
views are no part of a migration, because they depend on the bundles that have scored; so are the
rights on them (`rapport db views`).

Revision: 0017
"""

import logging
import re

import sqlalchemy as sa
from alembic import context, op

revision = "0017"
down_revision = "0015"
branch_labels = None
depends_on = None

ID = sa.String(length=200)
MEASURES = (
    "empathy_index",
    "low_empathy_risk",
    "answered_share",
    "empathy_total",
    "emotional_reactions",
    "interpretations",
    "explorations",
    "talk_share",
    "reflection_to_question",
    "complex_reflection_share",
    "open_question_share",
    "engagement",
    "understanding",
    "sympathy",
    "helpfulness",
)
VIEWS = re.compile(r"^(fact|dim|shown|operations)_[a-z_]+$")

log = logging.getLogger("alembic.runtime.migration")


def upgrade() -> None:
    op.add_column("turns", sa.Column("words", sa.Integer(), nullable=True))
    op.create_table(
        "rollup_marks",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("session_id", ID, nullable=True),
        sa.Column("month", sa.Date(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rollup_marks")),
    )
    op.create_table(
        "rollup_sessions",
        sa.Column("session_id", ID, nullable=False),
        sa.Column("bundle", ID, nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("week", sa.Date(), nullable=False),
        sa.Column("month", sa.Date(), nullable=False),
        sa.Column("team", ID, nullable=False),
        sa.Column("domain", sa.String(length=32), nullable=False),
        sa.Column("turns", sa.Integer(), nullable=False),
        sa.Column("counsellor_turns", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=True) for name in MEASURES),
        sa.PrimaryKeyConstraint("session_id", "bundle", name=op.f("pk_rollup_sessions")),
    )
    op.create_index(op.f("ix_rollup_sessions_month"), "rollup_sessions", ["month"])
    op.create_table(
        "rollup_counsellors",
        sa.Column("speaker", sa.String(length=64), nullable=False),
        sa.Column("joined", sa.Date(), nullable=False),
        sa.PrimaryKeyConstraint("speaker", name=op.f("pk_rollup_counsellors")),
    )
    _table_of_cells(
        "rollup_cells",
        (),
        (
            sa.Column("sessions", sa.Integer(), nullable=False),
            sa.Column("turns", sa.Integer(), nullable=False),
            sa.Column("counsellor_turns", sa.Integer(), nullable=False),
            sa.Column("clients", sa.Integer(), nullable=False),
            sa.Column("counsellors", sa.Integer(), nullable=False),
            sa.Column("hidden", sa.Boolean(), nullable=False),
        ),
    )
    _table_of_cells(
        "rollup_means",
        (sa.Column("measure", sa.String(length=32), nullable=False),),
        (
            sa.Column("n", sa.Integer(), nullable=False),
            sa.Column("total", sa.BigInteger(), nullable=False),
            sa.Column("squares", sa.BigInteger(), nullable=False),
            sa.Column("hidden", sa.Boolean(), nullable=False),
        ),
    )
    op.execute(
        "INSERT INTO rollup_marks (session_id) "
        "SELECT DISTINCT session_id FROM session_scores WHERE status <> 'open'"
    )
    if op.get_bind().dialect.name == "postgresql":
        _create_roles(context.config.attributes.get("read_role", "rapport_reader"))


def downgrade() -> None:
    """The roles stay: other databases of the server may use them."""
    inspector = sa.inspect(op.get_bind())
    for view in filter(VIEWS.match, inspector.get_view_names()):
        op.execute(f'DROP VIEW "{view}"')
    for table in ("rollup_means", "rollup_cells", "rollup_sessions"):
        op.drop_index(op.f(f"ix_{table}_month"), table_name=table)
        op.drop_table(table)
    op.drop_table("rollup_counsellors")
    op.drop_table("rollup_marks")
    op.drop_column("turns", "words")


def _table_of_cells(
    name: str, more_keys: tuple[sa.Column, ...], columns: tuple[sa.Column, ...]
) -> None:
    keys = (
        sa.Column("kind", sa.String(length=12), nullable=False),
        sa.Column("start", sa.Date(), nullable=False),
        sa.Column("bundle", ID, nullable=False),
        sa.Column("team", ID, nullable=False),
        sa.Column("domain", sa.String(length=32), nullable=False),
        sa.Column("cohort", sa.Integer(), nullable=False),
        sa.Column("counsellor", sa.String(length=64), nullable=False),
        *more_keys,
    )
    op.create_table(
        name,
        *keys,
        sa.Column("month", sa.Date(), nullable=False),
        sa.Column("until", sa.Date(), nullable=False),
        *columns,
        sa.PrimaryKeyConstraint(*(key.name for key in keys), name=op.f(f"pk_{name}")),
    )
    op.create_index(op.f(f"ix_{name}_month"), name, ["month"])


def _create_roles(role: str) -> None:
    connection = op.get_bind()
    lacking = [
        name
        for name in (role, f"{role}_aggregates")
        if not connection.scalar(
            sa.text("SELECT count(*) FROM pg_roles WHERE rolname = :name"), {"name": name}
        )
    ]
    allowed = connection.scalar(
        sa.text("SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user")
    )
    if not allowed:
        for name in lacking:
            log.warning(
                "role %s is not made: the migrating role may not create roles. "
                'Run CREATE ROLE "%s" NOLOGIN as an administrator, then `rapport db views`',
                name,
                name,
            )
        return
    quote = connection.dialect.identifier_preparer.quote
    for name in lacking:
        with connection.begin_nested():
            connection.execute(sa.text(f"CREATE ROLE {quote(name)} NOLOGIN"))
