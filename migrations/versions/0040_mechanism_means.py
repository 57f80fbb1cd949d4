"""Store the mechanisms of session scores on PostgreSQL as an array of nine numbers.

With every turn they were rewritten as named JSON, more than half of the row. The order of the
numbers: ``stream_app/store/database/mechanism_means.py``. Rewrites ``session_scores``: stop the
workers.

Revision: 0040
"""

import re

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None

VIEWS = re.compile(r"^(fact|dim|shown|operations)_[a-z_]+$")
"""The reporting views read the column; `rapport db views` makes them again."""
MECHANISMS = ("emotional_reactions", "interpretations", "explorations")
PARTS = ("mean", "recent_mean", "share")


def upgrade() -> None:
    numbers = ", ".join(
        f"(mechanisms->'{name}'->>'{part}')::double precision"
        for name in MECHANISMS
        for part in PARTS
    )
    _convert(
        "double precision[]",
        f"CASE WHEN mechanisms = '{{}}' THEN '{{}}'::double precision[] ELSE ARRAY[{numbers}] END",
    )


def downgrade() -> None:
    known = []
    for place, name in enumerate(MECHANISMS):
        first = 3 * place + 1
        pairs = ", ".join(f"'{part}', mechanisms[{first + i}]" for i, part in enumerate(PARTS))
        known.append(
            f"CASE WHEN mechanisms[{first}] IS NULL THEN '{{}}'::jsonb "
            f"ELSE jsonb_build_object('{name}', jsonb_build_object({pairs})) END"
        )
    _convert("jsonb", " || ".join(known))


def _convert(kind: str, value: str) -> None:
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    for view in filter(VIEWS.match, sa.inspect(connection).get_view_names()):
        op.execute(f'DROP VIEW "{view}"')
    op.execute(f"ALTER TABLE session_scores ALTER COLUMN mechanisms TYPE {kind} USING {value}")
