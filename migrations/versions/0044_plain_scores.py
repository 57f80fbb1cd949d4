"""Unpack the scores of turns on PostgreSQL, of databases that packed them (0038-0043).

Every column is JSONB, which plain SQL reads. Rewrites ``turn_scores``: stop the workers, and allow
space for a copy of the table.

Revision: 0044
"""

import re

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None

VIEWS = re.compile(r"^(fact|dim|shown|operations)_[a-z_]+$")
"""The reporting views read these columns; `rapport db views` makes them again."""
TABLES = ("turn_scores", "shadow_scores")
COLUMNS = ("expressed", "perceived", "client", "abstained")
FUNCTIONS = (
    "rapport_json(bytea, text[])",
    "rapport_json(bytea)",
    "rapport_pack(jsonb)",
    "rapport_pack_number(jsonb, boolean)",
    "rapport_is_share(jsonb)",
    "rapport_bytes(integer, integer)",
    "rapport_read(bytea, integer)",
    "rapport_number(bytea, integer)",
    "rapport_two(bytea, integer)",
    "rapport_names()",
)


def upgrade() -> None:
    bind = op.get_bind()
    if bind.dialect.name != "postgresql" or not _is_packed(bind):
        return
    for view in filter(VIEWS.match, sa.inspect(bind).get_view_names()):
        op.execute(f'DROP VIEW "{view}"')
    for table in TABLES:
        parts = (f"ALTER COLUMN {name} TYPE jsonb USING rapport_json({name})" for name in COLUMNS)
        op.execute(f"ALTER TABLE {table} {', '.join(parts)}")
    for function in FUNCTIONS:
        op.execute(f"DROP FUNCTION IF EXISTS {function}")


def downgrade() -> None:
    """Leave the scores plain: 0038 to 0043 no longer pack them."""


def _is_packed(bind: sa.Connection) -> bool:
    found = {each["name"]: each["type"] for each in sa.inspect(bind).get_columns("turn_scores")}
    return isinstance(found["expressed"], sa.LargeBinary)
