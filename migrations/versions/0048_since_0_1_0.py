"""All that the development branch added after release 0.1.0, in one migration.

It keeps the number of the newest of the migrations that it replaces. Their data goes like this:

- Times of storing, their periods and the numbers of roll-ups are filled in from what is stored.
- Entries of the audit trail are chained by hashes in their order. They no longer contain session
  ids and counsellors' pseudonyms, which erasures remove, but commitments to them; the table
  ``audit_subjects`` has the names and salts. Nobody can change or delete an entry.
- Supervisors without a team keep reading all teams, now as a flag of their account; counsellors
  keep the sessions that they can read; nobody who knows the console is introduced to it.
- A session with stored turns and ``consent`` false is one whose consent was withdrawn.
- Workers take over the offsets of their group if there are sessions already.

On PostgreSQL two roles without a login are made, unless they exist or the migrating role may not:
one for the reporting views, one (``…_aggregates``) for those views alone that hide small cells. The
views are no part of a migration, because they depend on the bundles that have scored; so are the
rights on them (`rapport db views`).

Stop the workers of 0.1.0 before: they cannot read the states that newer ones write. A downgrade
destroys the keys of sessions, and with them what was encrypted, states and unpublished messages.

Revision: 0048
"""

import hashlib
import json
import logging
import re
import secrets
from datetime import UTC

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0048"
down_revision = "0010"
branch_labels = None
depends_on = None

log = logging.getLogger("alembic.runtime.migration")

ID = sa.String(200)
NAME = sa.String(100)
PSEUDONYM = sa.String(64)
UUID = sa.String(36)
SHORT = sa.String(32)
KIND = sa.String(10)
MOMENT = sa.DateTime(timezone=True)
AUTO_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JSON = sa.JSON().with_variant(JSONB(), "postgresql")

VIEWS = re.compile(r"^(fact|dim|shown|operations)_[a-z_]+$")
"""SQLite copies a table to drop a column; views over it go first, and are made again later."""


def _key(name: str, kind: sa.types.TypeEngine) -> sa.Column:
    return sa.Column(name, kind, primary_key=True)


def _needed(name: str, kind: sa.types.TypeEngine, default: object = None) -> sa.Column:
    return sa.Column(name, kind, nullable=False, server_default=default)


def _optional(name: str, kind: sa.types.TypeEngine) -> sa.Column:
    return sa.Column(name, kind)


def _columns() -> dict[str, tuple[sa.Column, ...]]:
    """New columns of tables that 0.1.0 has."""
    return {
        "sessions": (
            _optional("stored_at", MOMENT),
            _needed("withdrawn", sa.Boolean(), sa.false()),
            _needed("hidden", sa.Boolean(), sa.false()),
        ),
        "session_states": (_optional("seen_at", MOMENT), _optional("seen_period", sa.Integer())),
        "session_speakers": (_needed("reads", sa.Boolean(), sa.true()),),
        "turns": (
            _optional("chars", sa.Integer()),
            _optional("words", sa.Integer()),
            _optional("unscored", sa.String(16)),
            _optional("language", sa.String(35)),
        ),
        "turn_scores": (_needed("intents", JSON, "{}"),),
        "session_scores": (
            _needed("unscored_turns", sa.Integer(), "0"),
            _optional("activity_hour", sa.Integer()),
        ),
        "alerts": (_optional("protocol", sa.Text()),),
        "people": (
            _needed("all_teams", sa.Boolean(), sa.false()),
            _optional("identity", sa.String(500)),
            _needed("initial_password", sa.Boolean(), sa.false()),
            _optional("toured_at", MOMENT),
        ),
        "access_tokens": (
            _optional("team", ID),
            _optional("domain", ID),
            _optional("channel", ID),
            _optional("last_used_at", MOMENT),
            _optional("rights", NAME),
        ),
        "audit": (_optional("subject", PSEUDONYM), _optional("hash", PSEUDONYM)),
    }


def _tables() -> dict[str, tuple[sa.Column, ...]]:
    return {
        "consents": (
            _key("consent_id", UUID),
            _needed("session_id", ID),
            _needed("status", KIND),
            _needed("effective", sa.Boolean()),
            _optional("version", sa.String(50)),
            _optional("source", NAME),
            _optional("speaker", PSEUDONYM),
            _optional("seq", sa.Integer()),
            _needed("occurred_at", MOMENT),
            _needed("stored_at", MOMENT),
            _optional("purposes", JSON),
        ),
        "holds": (
            _key("session_id", ID),
            _needed("reason", ID),
            _needed("person", NAME),
            _needed("at", MOMENT),
        ),
        "session_keys": (
            _key("session_id", ID),
            _needed("master_key", sa.String(16)),
            _needed("wrapped", sa.LargeBinary()),
            _needed("created_at", MOMENT),
        ),
        "session_assignments": (
            _key("session_id", ID),
            _key("speaker", PSEUDONYM),
            _needed("person", NAME),
            _needed("at", MOMENT),
        ),
        "session_numbers": (
            _key("session_id", ID),
            _optional("next_seq", sa.BigInteger()),
            _needed("at", MOMENT),
            _optional("owner", SHORT),
        ),
        "ingest_keys": (
            _key("digest", SHORT),
            _needed("fingerprint", SHORT),
            _needed("results", JSON),
            _optional("busy_until", MOMENT),
            _needed("answered", sa.Boolean()),
            _needed("at", MOMENT),
        ),
        "log_positions": (
            _key("consumer_group", sa.String(255)),
            _key("topic", sa.String(255)),
            _key("partition", sa.Integer()),
            _needed("next_offset", sa.BigInteger()),
            _needed("at", MOMENT),
        ),
        "questionnaires": (
            _key("questionnaire_id", ID),
            _needed("session_id", ID),
            _needed("instrument", sa.String(20)),
            _needed("items", JSON),
            _needed("occurred_at", MOMENT),
        ),
        "shadow_bundles": (
            _key("bundle", ID),
            _needed("digest", PSEUDONYM),
            _needed("manifest", JSON),
            _needed("first_used_at", MOMENT),
        ),
        "shadow_scores": (
            _key("session_id", ID),
            _key("seq", sa.Integer()),
            _key("stage", sa.String(11)),
            _key("bundle", ID),
            _needed("expressed", JSON),
            _needed("perceived", JSON),
            _needed("client", JSON),
            _needed("abstained", JSON),
        ),
        "drift_changes": (
            _key("change_id", UUID),
            _needed("name", NAME),
            _needed("measure", ID),
            _needed("about", ID),
            _needed("since", MOMENT),
            _needed("value", sa.Double()),
            _needed("found_at", MOMENT),
            _optional("acknowledged_at", MOMENT),
            _optional("person", NAME),
        ),
        "interventions": (
            _key("intervention_id", UUID),
            _needed("session_id", ID),
            _needed("kind", sa.String(12)),
            _optional("text", sa.Text()),
            _optional("episode_id", UUID),
            _needed("person", NAME),
            _needed("at", MOMENT),
            _optional("published_at", MOMENT),
            _optional("received_by", NAME),
            _optional("received_at", MOMENT),
        ),
        "escalations": (
            _key("alert_id", UUID),
            _key("step", sa.SmallInteger()),
            _key("recipient", NAME),
            _needed("session_id", ID),
            _needed("due_at", MOMENT),
            _needed("state", sa.String(12)),
            _optional("target", NAME),
            _needed("attempts", sa.Integer()),
            _optional("tried_at", MOMENT),
            _optional("problem", ID),
        ),
        "rule_versions": (
            _key("version", AUTO_ID),
            _needed("text", sa.Text()),
            _needed("digest", sa.String(16)),
            _needed("person", NAME),
            _needed("at", MOMENT),
            _needed("reason", sa.String(500)),
        ),
        "rule_adoptions": (
            _key("id", AUTO_ID),
            _needed("version", AUTO_ID),
            _needed("person", NAME),
            _needed("at", MOMENT),
            _needed("reason", sa.String(500)),
        ),
        "sign_in_attempts": (
            _key("digest", SHORT),
            _needed("refused", sa.Integer()),
            _needed("last_at", MOMENT),
            _optional("succeeded_at", MOMENT),
        ),
        "saved_views": (
            _key("person", NAME),
            _key("name", NAME),
            _needed("query", sa.String(2000)),
            _optional("counsellor", PSEUDONYM),
            _needed("at", MOMENT),
        ),
        "studies": (
            _key("study_id", ID),
            _key("person", NAME),
            _needed("until", MOMENT),
            _needed("at", MOMENT),
        ),
        "pins": (
            _key("person", NAME),
            _key("session_id", ID),
            _needed("at", MOMENT),
        ),
        "presence": (
            _key("session_id", ID),
            _key("person", NAME),
            _needed("seen_at", MOMENT),
        ),
        "reviews": (
            _key("review_id", UUID),
            _needed("session_id", ID),
            _optional("episode_id", UUID),
            _needed("reviewer", NAME),
            _needed("person", NAME),
            _needed("origin", KIND),
            _optional("pair_id", UUID),
            _needed("scorecard", JSON),
            _needed("at", MOMENT),
            _needed("due_at", MOMENT),
            _optional("signed_at", MOMENT),
        ),
        "review_answers": (
            _key("review_id", UUID),
            _key("criterion", sa.String(50)),
            _needed("session_id", ID),
            _needed("value", sa.SmallInteger()),
            _optional("auto_value", sa.SmallInteger()),
            _needed("at", MOMENT),
        ),
        "review_comments": (
            _key("comment_id", UUID),
            _needed("review_id", UUID),
            _needed("session_id", ID),
            _needed("seq", sa.Integer()),
            _needed("comment", sa.Text()),
            _needed("person", NAME),
            _needed("at", MOMENT),
        ),
        "rating_comments": (
            _key("comment_id", UUID),
            _needed("session_id", ID),
            _optional("seq", sa.Integer()),
            _needed("comment", sa.Text()),
            _needed("person", NAME),
            _needed("at", MOMENT),
        ),
        "proposals": (
            _key("session_id", ID),
            _key("question_key", PSEUDONYM),
            _key("model", NAME),
            _needed("question", sa.String(300)),
            _optional("answer", sa.String(300)),
            _optional("value", sa.SmallInteger()),
            _optional("seq", sa.Integer()),
            _optional("quote_start", sa.Integer()),
            _optional("quote_end", sa.Integer()),
            _optional("dropped", sa.String(20)),
            _needed("at", MOMENT),
        ),
        "coaching_goals": (
            _key("goal_id", UUID),
            _needed("counsellor", PSEUDONYM),
            _needed("person", NAME),
            _needed("measure", SHORT),
            _needed("goal", sa.Text()),
            _needed("starts_on", sa.Date()),
            _needed("ends_on", sa.Date()),
            _needed("state", KIND),
            _needed("at", MOMENT),
            _optional("target", sa.Double()),
        ),
        "erasure_receipts": (
            _key("id", sa.Integer()),
            _needed("digest", SHORT),
            _needed("at", MOMENT),
            _needed("removed", JSON),
            _optional("unfinished", ID),
            _needed("archived", sa.Boolean()),
            _optional("receipt", JSON),
        ),
        "archived_sessions": (
            _key("session_id", ID),
            _needed("month", sa.Date()),
            _optional("team", ID),
            _needed("started_at", MOMENT),
            _needed("stored_at", MOMENT),
            _needed("archived_at", MOMENT),
        ),
        "audit_subjects": (
            _key("subject", PSEUDONYM),
            _needed("kind", KIND),
            _needed("value", ID),
            _optional("salt", SHORT),
        ),
        "rollup_marks": (
            _key("id", AUTO_ID),
            _optional("session_id", ID),
            _optional("month", sa.Date()),
        ),
        "rollup_counsellors": (
            _key("speaker", PSEUDONYM),
            _needed("joined", sa.Date()),
        ),
    }


MECHANISMS = ("emotional_reactions", "interpretations", "explorations")
PARTS = ("mean", "recent_mean", "share")
PERCEIVED = ("engagement", "understanding", "sympathy", "helpfulness")
MEASURES = (
    "empathy_index",
    "low_empathy_risk",
    "answered_share",
    "empathy_total",
    *MECHANISMS,
    "talk_share",
    "reflection_to_question",
    "complex_reflection_share",
    "open_question_share",
    *PERCEIVED,
)
SUMS = (
    "turns",
    "late",
    "truncated",
    "confidence",
    "words_n",
    "words",
    *(f"words_{number}" for number in range(19)),
    *(
        f"{mechanism}_{part}"
        for mechanism in MECHANISMS
        for part in ("n", "total", "abstained", "level_0", "level_1", "level_2")
    ),
    *(f"{head}_{part}" for head in PERCEIVED for part in ("n", "total", "abstained")),
)


def _rollups() -> dict[str, tuple[sa.Column, ...]]:
    """Tables of sums."""
    of_turns = {
        "day": sa.Date(),
        "bundle": ID,
        "team": ID,
        "domain": SHORT,
        "channel": ID,
        "lang": sa.String(35),
        "role": KIND,
    }
    cell = {
        "kind": sa.String(12),
        "start": sa.Date(),
        "bundle": ID,
        "team": ID,
        "domain": SHORT,
        "cohort": sa.Integer(),
        "counsellor": PSEUDONYM,
    }
    return {
        "rollup_sessions": (
            _key("session_id", ID),
            _key("bundle", ID),
            *(_needed(name, sa.Date()) for name in ("day", "week", "month")),
            _needed("team", ID),
            _needed("domain", SHORT),
            *(_needed(name, sa.Integer()) for name in ("turns", "counsellor_turns")),
            *(_optional(name, sa.BigInteger()) for name in MEASURES),
        ),
        "rollup_turns": (
            _key("session_id", ID),
            *(
                _key(name, kind) if name in ("bundle", "role") else _needed(name, kind)
                for name, kind in of_turns.items()
            ),
            _needed("month", sa.Date()),
            *(_needed(name, sa.BigInteger()) for name in SUMS),
        ),
        "rollup_turn_days": (
            _needed("sessions", sa.Integer()),
            *(_key(name, kind) for name, kind in of_turns.items()),
            _needed("month", sa.Date()),
            *(_needed(name, sa.BigInteger()) for name in SUMS),
        ),
        "rollup_cells": (
            *(_key(name, kind) for name, kind in cell.items()),
            *(_needed(name, sa.Date()) for name in ("month", "until")),
            *(
                _needed(name, sa.Integer())
                for name in ("sessions", "turns", "counsellor_turns", "clients", "counsellors")
            ),
            _needed("hidden", sa.Boolean()),
        ),
        "rollup_means": (
            *(_key(name, kind) for name, kind in cell.items()),
            _key("measure", SHORT),
            *(_needed(name, sa.Date()) for name in ("month", "until")),
            _needed("n", sa.Integer()),
            *(_needed(name, sa.BigInteger()) for name in ("total", "squares")),
            _needed("hidden", sa.Boolean()),
        ),
    }


INDEXES = (
    ("sessions", ("withdrawn",), "withdrawn"),
    ("sessions", ("hidden", "session_id"), "hidden"),
    ("sessions", ("team",), None),
    ("session_states", ("bundle", "status", "seen_period"), None),
    ("session_scores", ("status",), None),
    ("session_scores", ("started_at", "session_id"), None),
    ("session_scores", ("activity_hour", "session_id"), None),
    ("session_speakers", ("role", "speaker"), None),
    ("turns", ("stored_at",), "text IS NOT NULL"),
    ("alerts", ("rule",), None),
    ("audit", ("subject",), None),
    ("consents", ("session_id",), None),
    ("consents", ("speaker",), None),
    ("session_assignments", ("speaker",), None),
    ("ingest_keys", ("at",), None),
    ("questionnaires", ("session_id",), None),
    ("interventions", ("published_at",), "published_at IS NULL"),
    (
        "interventions",
        (
            "session_id",
            "at",
        ),
        None,
    ),
    ("escalations", ("session_id",), None),
    (
        "escalations",
        (
            "state",
            "due_at",
        ),
        None,
    ),
    ("reviews", ("pair_id",), None),
    (
        "reviews",
        (
            "reviewer",
            "signed_at",
        ),
        None,
    ),
    ("reviews", ("session_id",), None),
    ("review_answers", ("session_id",), None),
    ("review_comments", ("review_id",), None),
    ("review_comments", ("session_id",), None),
    ("rating_comments", ("session_id",), None),
    ("coaching_goals", ("counsellor",), None),
    ("erasure_receipts", ("at",), None),
    ("erasure_receipts", ("digest",), None),
    ("archived_sessions", ("month",), None),
    ("archived_sessions", ("team",), None),
    ("audit_subjects", ("value",), None),
    ("rollup_sessions", ("month",), None),
    ("rollup_turns", ("month",), None),
    ("rollup_turn_days", ("month",), None),
    ("rollup_cells", ("month",), None),
    (
        "rollup_means",
        (
            "kind",
            "measure",
            "start",
        ),
        None,
    ),
    ("rollup_means", ("month",), None),
)
"""New indexes: their table, columns and condition."""
EARLIER_INDEXES = (
    ("session_states", ("bundle", "status", "last_activity_at"), None),
    ("session_scores", ("status", "low_empathy_risk"), None),
    ("turns", ("occurred_at",), "text IS NOT NULL"),
    ("audit", ("session_id",), None),
)
FILL_FACTORS = {"sessions": 60, "session_states": 50, "session_scores": 50, "window_turns": 50}
"""Room for new versions of rows in percent: a turn updates rows of these tables in place."""
LONGER = (("sessions", "end_reason"), ("mutes", "reason"))
"""Columns that contain encrypted text, which is longer."""
SEALED = (
    ("turns", "text", None),
    ("sessions", "end_reason", None),
    ("alert_actions", "note", None),
    ("mutes", "reason", None),
    ("disputes", "answer", None),
    ("disputes", "note", ""),
)
"""Columns of encrypted text, and what a downgrade leaves in place of it."""
MARK = "\ufdd0"

COUNSELLOR = "counsellor "
READ_COUNSELLOR = "read counsellor"
ERASED = "erased:"
FORGOTTEN = "(erased)"
REFUSAL = "the audit trail cannot be changed"
AT_A_TIME = 1000


def upgrade() -> None:
    server = op.get_bind().dialect.name == "postgresql"
    for table, columns in _columns().items():
        for column in columns:
            op.add_column(table, column)
    for table, columns in {**_tables(), **_rollups()}.items():
        keys = (column.name for column in columns if column.primary_key)
        op.create_table(table, *columns, sa.PrimaryKeyConstraint(*keys, name=op.f(f"pk_{table}")))
    _fill_in(server)
    _chain_audit()
    for table, column in LONGER:
        with op.batch_alter_table(table) as batch:
            batch.alter_column(column, existing_type=ID, type_=sa.Text())
    for index in EARLIER_INDEXES:
        _drop_index(*index)
    with op.batch_alter_table("audit") as batch:
        batch.drop_column("session_id")
        batch.alter_column("hash", existing_type=PSEUDONYM, nullable=False)
    for index in INDEXES:
        _create_index(*index)
    if server:
        _lay_out_rows()
        _create_roles(context.config.attributes.get("read_role", "rapport_reader"))
    _protect_audit(server)


def downgrade() -> None:
    """Return to 0.1.0. The roles stay: other databases of the server may use them."""
    server = op.get_bind().dialect.name == "postgresql"
    for view in filter(VIEWS.match, sa.inspect(op.get_bind()).get_view_names()):
        op.execute(f'DROP VIEW "{view}"')
    _unprotect_audit(server)
    _forget()
    op.add_column("audit", _optional("session_id", ID))
    _name_subjects()
    for index in INDEXES:
        _drop_index(*index)
    if server:
        _reset_rows()
    for table in {**_tables(), **_rollups()}:
        op.drop_table(table)
    for table, columns in _columns().items():
        with op.batch_alter_table(table) as batch:
            for column in columns:
                batch.drop_column(column.name)
    for table, column in LONGER:
        with op.batch_alter_table(table) as batch:
            batch.alter_column(column, existing_type=sa.Text(), type_=ID)
    for index in EARLIER_INDEXES:
        _create_index(*index)


def _create_index(table: str, columns: tuple[str, ...], where: str | None) -> None:
    condition = None if where is None else sa.text(where)
    op.create_index(
        op.f(_name(table, columns)),
        table,
        list(columns),
        postgresql_where=condition,
        sqlite_where=condition,
    )


def _drop_index(table: str, columns: tuple[str, ...], _where: str | None) -> None:
    op.drop_index(op.f(_name(table, columns)), table_name=table)


def _name(table: str, columns: tuple[str, ...]) -> str:
    return f"ix_{table}_{'_'.join(columns)}"


def _fill_in(server: bool) -> None:
    """Give the new columns what is known of stored rows."""
    for table, column in (("sessions", "stored_at"), ("session_states", "seen_at")):
        op.execute(
            f"UPDATE {table} SET {column} = coalesce((SELECT max(turns.stored_at) FROM turns "  # noqa: S608  # names of ours
            f"WHERE turns.session_id = {table}.session_id), CURRENT_TIMESTAMP)"
        )
    for table, column, period, seconds in (
        ("session_states", "seen_at", "seen_period", 600),
        ("session_scores", "last_activity_at", "activity_hour", 3600),
    ):
        since = f"extract(epoch FROM {column})" if server else f"strftime('%s', {column})"
        whole = f"floor({since} / {seconds})" if server else f"{since} / {seconds}"
        op.execute(f"UPDATE {table} SET {period} = CAST({whole} AS integer)")  # noqa: S608  # names of ours
    op.execute(
        "UPDATE sessions SET withdrawn = true WHERE consent = false "
        "AND EXISTS (SELECT 1 FROM turns WHERE turns.session_id = sessions.session_id)"
    )
    op.execute("UPDATE people SET all_teams = true WHERE role = 'supervisor' AND team IS NULL")
    op.execute("UPDATE people SET toured_at = CURRENT_TIMESTAMP")
    op.execute(
        "INSERT INTO installation (name, value) "
        "SELECT 'log_positions', 'take over' WHERE EXISTS (SELECT 1 FROM sessions)"
    )
    op.execute(
        "INSERT INTO rollup_marks (session_id) "
        "SELECT DISTINCT session_id FROM session_scores WHERE status <> 'open'"
    )


def _forget() -> None:
    """Delete what 0.1.0 could not read."""
    for table, column, instead in SEALED:
        emptied = sa.text(f"UPDATE {table} SET {column} = :instead WHERE {column} LIKE :sealed")  # noqa: S608  # names of ours
        op.execute(emptied.bindparams(instead=instead, sealed=f"{MARK}%"))
    for table in ("session_states", "window_turns", "outbox"):
        op.execute(f"DELETE FROM {table}")  # noqa: S608  # names of ours
    op.execute("DELETE FROM installation WHERE name IN ('audit-head', 'log_positions')")


def _lay_out_rows() -> None:
    """Store what PostgreSQL rewrites with every turn so that it is updated in place.

    The mechanisms of a session become an array: as named JSON they were more than half of the row.
    Scores are in the order of their time: a BRIN index finds them, and is not written per row.
    """
    numbers = ", ".join(
        f"(mechanisms->'{name}'->>'{part}')::double precision"
        for name in MECHANISMS
        for part in PARTS
    )
    empty = "mechanisms = '{}' THEN '{}'::double precision[]"
    _convert_mechanisms("double precision[]", f"CASE WHEN {empty} ELSE ARRAY[{numbers}] END")
    _replace_index_of_scores("brin")
    for table, percent in FILL_FACTORS.items():
        op.execute(f"ALTER TABLE {table} SET (fillfactor = {percent})")
    op.execute("ALTER TABLE session_states SET (toast_tuple_target = 4080)")
    op.execute("ALTER TABLE outbox ALTER COLUMN messages SET STORAGE EXTERNAL")


def _reset_rows() -> None:
    known = []
    for place, name in enumerate(MECHANISMS):
        first = 3 * place + 1
        pairs = ", ".join(f"'{part}', mechanisms[{first + i}]" for i, part in enumerate(PARTS))
        known.append(
            f"CASE WHEN mechanisms[{first}] IS NULL THEN '{{}}'::jsonb "
            f"ELSE jsonb_build_object('{name}', jsonb_build_object({pairs})) END"
        )
    _convert_mechanisms("jsonb", " || ".join(known))
    _replace_index_of_scores("btree")
    for table in FILL_FACTORS:
        op.execute(f"ALTER TABLE {table} RESET (fillfactor)")
    op.execute("ALTER TABLE session_states RESET (toast_tuple_target)")
    op.execute("ALTER TABLE outbox ALTER COLUMN messages SET STORAGE EXTENDED")


def _convert_mechanisms(kind: str, value: str) -> None:
    op.execute(f"ALTER TABLE session_scores ALTER COLUMN mechanisms TYPE {kind} USING {value}")


def _replace_index_of_scores(method: str) -> None:
    name = _name("turn_scores", ("occurred_at",))
    op.drop_index(name, "turn_scores")
    op.create_index(name, "turn_scores", ["occurred_at"], postgresql_using=method)


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


audit = sa.table(
    "audit",
    sa.column("id", sa.BigInteger()),
    sa.column("at", MOMENT),
    *(sa.column(name, sa.String()) for name in ("person", "action", "session_id", "subject")),
    *(sa.column(name, sa.String()) for name in ("detail", "hash")),
)
subjects = sa.table(
    "audit_subjects",
    *(sa.column(name, sa.String()) for name in ("subject", "kind", "value", "salt")),
)


def _chain_audit() -> None:
    """Give every entry its subject and hash, in order, and store the head."""
    connection = op.get_bind()
    made: dict[tuple[str, str], str] = {}
    last, previous = 0, "0" * 64
    query = sa.select(audit).order_by(audit.c.id).limit(AT_A_TIME)
    while found := connection.execute(query.where(audit.c.id > last)).mappings().all():
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
    op.execute(
        sa.text("INSERT INTO installation (name, value) VALUES ('audit-head', :head)").bindparams(
            head=f"{last}:{previous}"
        )
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


def _name_subjects() -> None:
    """Write the session ids and pseudonyms back into the entries."""
    name = "(SELECT value FROM audit_subjects AS a WHERE a.subject = audit.subject"
    op.execute(f"UPDATE audit SET session_id = {name} AND a.kind = 'session')")  # noqa: S608  # names of ours
    op.execute(
        f"UPDATE audit SET detail = '{COUNSELLOR}' || {name}) "  # noqa: S608  # names of ours
        "WHERE subject IN (SELECT subject FROM audit_subjects WHERE kind = 'counsellor')"
    )


def _protect_audit(server: bool) -> None:
    if server:
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


def _unprotect_audit(server: bool) -> None:
    if server:
        op.execute("DROP TRIGGER audit_row ON audit")
        op.execute("DROP TRIGGER audit_statement ON audit")
        op.execute("DROP FUNCTION audit_refuse_change()")
        return
    for event in ("UPDATE", "DELETE"):
        op.execute(f"DROP TRIGGER audit_{event.lower()}")
