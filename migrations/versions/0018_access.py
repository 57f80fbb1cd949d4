"""Supervisors of all teams, accounts of an identity provider, rights and last use of tokens.

Supervisors without a team read all teams so far. They keep that, now as a flag of their account;
tokens keep all rights of their account.

Revision: 0018
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("people") as table:
        table.add_column(
            sa.Column("all_teams", sa.Boolean(), nullable=False, server_default=sa.false())
        )
        table.add_column(sa.Column("identity", sa.String(length=500)))
    people = sa.table(
        "people",
        sa.column("role", sa.String()),
        sa.column("team", sa.String()),
        sa.column("all_teams", sa.Boolean()),
    )
    of_all_teams = (people.c.role == "supervisor") & people.c.team.is_(None)
    op.execute(sa.update(people).where(of_all_teams).values(all_teams=sa.true()))
    with op.batch_alter_table("access_tokens") as table:
        table.add_column(sa.Column("last_used_at", sa.DateTime(timezone=True)))
        table.add_column(sa.Column("rights", sa.String(length=100)))


def downgrade() -> None:
    with op.batch_alter_table("access_tokens") as table:
        table.drop_column("rights")
        table.drop_column("last_used_at")
    with op.batch_alter_table("people") as table:
        table.drop_column("identity")
        table.drop_column("all_teams")
