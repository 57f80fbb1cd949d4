"""Chain the audit trail by hashes, and let nobody change or delete its entries.

Entries no longer contain session ids and counsellors' pseudonyms, which erasures remove, but
commitments to them; the table ``audit_subjects`` has the names and salts. Existing entries are
chained in their order.

Revision: 0019
"""

import hashlib
import json
import secrets
from datetime import UTC

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

COUNSELLOR = "counsellor "
READ_COUNSELLOR = "read counsellor"
ERASED = "erased:"
FORGOTTEN = "(erased)"
REFUSAL = "the audit trail cannot be changed"
AT_A_TIME = 1000

audit = sa.table(
    "audit",
    sa.column("id", sa.BigInteger()),
    sa.column("at", sa.DateTime(timezone=True)),
    sa.column("person", sa.String()),
    sa.column("action", sa.String()),
    sa.column("session_id", sa.String()),
    sa.column("subject", sa.String()),
    sa.column("detail", sa.String()),
    sa.column("hash", sa.String()),
)
subjects = sa.table(
    "audit_subjects",
    sa.column("subject", sa.String()),
    sa.column("kind", sa.String()),
    sa.column("value", sa.String()),
    sa.column("salt", sa.String()),
)


def upgrade() -> None:
    op.create_table(
        "audit_subjects",
        sa.Column("subject", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("value", sa.String(length=200), nullable=False),
        sa.Column("salt", sa.String(length=32), nullable=True),
        sa.PrimaryKeyConstraint("subject", name=op.f("pk_audit_subjects")),
    )
    op.create_index(op.f("ix_audit_subjects_value"), "audit_subjects", ["value"])
    op.add_column("audit", sa.Column("subject", sa.String(length=64), nullable=True))
    op.add_column("audit", sa.Column("hash", sa.String(length=64), nullable=True))
    head = _chain(op.get_bind())
    op.execute(
        sa.text("INSERT INTO installation (name, value) VALUES ('audit-head', :head)").bindparams(
            head=head
        )
    )
    op.drop_index(op.f("ix_audit_session_id"), table_name="audit")
    with op.batch_alter_table("audit") as table:
        table.drop_column("session_id")
        table.alter_column("hash", existing_type=sa.String(length=64), nullable=False)
    op.create_index(op.f("ix_audit_subject"), "audit", ["subject"])
    _protect(op.get_bind().dialect.name)


def downgrade() -> None:
    _unprotect(op.get_bind().dialect.name)
    op.add_column("audit", sa.Column("session_id", sa.String(length=200), nullable=True))
    op.execute(
        "UPDATE audit SET session_id = (SELECT value FROM audit_subjects AS a "
        "WHERE a.subject = audit.subject AND a.kind = 'session')"
    )
    op.execute(
        "UPDATE audit SET detail = 'counsellor ' || (SELECT value FROM audit_subjects AS a "
        "WHERE a.subject = audit.subject) "
        "WHERE subject IN (SELECT subject FROM audit_subjects WHERE kind = 'counsellor')"
    )
    op.drop_index(op.f("ix_audit_subject"), table_name="audit")
    with op.batch_alter_table("audit") as table:
        table.drop_column("subject")
        table.drop_column("hash")
    op.create_index(op.f("ix_audit_session_id"), "audit", ["session_id"])
    op.execute("DELETE FROM installation WHERE name = 'audit-head'")
    op.drop_index(op.f("ix_audit_subjects_value"), table_name="audit_subjects")
    op.drop_table("audit_subjects")


def _chain(connection: sa.Connection) -> str:
    """Give every entry its subject and hash, in order; return the head."""
    made: dict[tuple[str, str], str] = {}
    last, previous = 0, "0" * 64
    while True:
        query = sa.select(audit).where(audit.c.id > last).order_by(audit.c.id).limit(AT_A_TIME)
        found = connection.execute(query).mappings().all()
        if not found:
            return f"{last}:{previous}"
        for row in found:
            entry = dict(row)
            about = _about(entry)
            if about is not None:
                if about not in made:
                    made[about] = _subject(connection, *about)
                entry["subject"] = made[about]
                if about[0] == "counsellor":
                    entry["detail"] = None
            last, previous = entry["id"], _hash(previous, entry)
            connection.execute(
                sa.update(audit)
                .where(audit.c.id == last)
                .values(subject=entry["subject"], detail=entry["detail"], hash=previous)
            )


def _about(entry: dict) -> tuple[str, str] | None:
    if entry["session_id"] is not None:
        return "session", entry["session_id"]
    if entry["action"] == READ_COUNSELLOR and (entry["detail"] or "").startswith(COUNSELLOR):
        return "counsellor", entry["detail"].removeprefix(COUNSELLOR)
    return None


def _subject(connection: sa.Connection, kind: str, value: str) -> str:
    salt = secrets.token_hex(16)
    subject = hashlib.sha256(f"{salt}:{kind}:{value}".encode()).hexdigest()
    kept = None if value.startswith(ERASED) or value == FORGOTTEN else salt
    row = {"subject": subject, "kind": kind, "value": value, "salt": kept}
    connection.execute(sa.insert(subjects).values(row))
    return subject


def _hash(previous: str, row: dict) -> str:
    at = row["at"] if row["at"].tzinfo else row["at"].replace(tzinfo=UTC)
    content = [
        previous,
        row["id"],
        at.astimezone(UTC).isoformat(timespec="microseconds"),
        row["person"],
        row["action"],
        row["subject"],
        row["detail"],
    ]
    return hashlib.sha256(json.dumps(content, ensure_ascii=True).encode()).hexdigest()


def _protect(dialect: str) -> None:
    if dialect == "postgresql":
        op.execute(
            "CREATE FUNCTION audit_refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$BEGIN RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = '42501'; END$$"
        )
        for event, scope in (("UPDATE OR DELETE", "ROW"), ("TRUNCATE", "STATEMENT")):
            op.execute(
                f"CREATE TRIGGER audit_{scope.lower()} BEFORE {event} ON audit "
                f"FOR EACH {scope} EXECUTE FUNCTION audit_refuse_change()"
            )
        return
    for event in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER audit_{event.lower()} BEFORE {event} ON audit "
            f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
        )


def _unprotect(dialect: str) -> None:
    if dialect == "postgresql":
        op.execute("DROP TRIGGER audit_row ON audit")
        op.execute("DROP TRIGGER audit_statement ON audit")
        op.execute("DROP FUNCTION audit_refuse_change()")
        return
    for event in ("UPDATE", "DELETE"):
        op.execute(f"DROP TRIGGER audit_{event.lower()}")
