"""Table definitions. Times are UTC; JSON columns contain parts of the wire contract."""

from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Date,
    DateTime,
    Dialect,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    TypeDecorator,
    case,
    false,
    func,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import JSONB

from stream_app.contracts.events import MAX_ID_CHARS
from stream_app.contracts.scores import MECHANISMS
from stream_app.core.measures import catalogue
from stream_app.core.measures.catalogue import Use
from stream_app.core.measures.heads import PERCEIVED
from stream_app.store.database import head_columns
from stream_app.store.database.mechanism_means import MechanismMeans

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class UtcDateTime(TypeDecorator[datetime]):
    """``timestamptz``; on SQLite, which has no time zones, a naive value in UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert to UTC.

        Raises:
            ValueError: the time has no time zone.
        """
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a time zone cannot be stored")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(
        self,
        value: datetime | None,
        dialect: Dialect,  # noqa: ARG002  # SQLAlchemy passes it by this name
    ) -> datetime | None:
        """Return an aware time in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Json = JSON().with_variant(JSONB(), "postgresql")
OptionalJson = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
"""Stores None as SQL NULL, not as JSON null."""
AutoId = BigInteger().with_variant(Integer(), "sqlite")


MERGE: Final = "merge"
"""Key of ``Column.info``: how an upsert combines the new and the stored value; else it replaces."""


def _earliest(new: ColumnElement[Any], stored: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((stored.is_(None), new), (new < stored, new), else_=stored)


_IF_KNOWN: Final = {MERGE: func.coalesce}
_EARLIEST: Final = {MERGE: _earliest}
"""A session continues with an empty state under another bundle, or after its state expired."""


def _id(name: str, **options: Any) -> Column[str]:
    return Column(name, String(MAX_ID_CHARS), **options)


bundles = Table(
    "bundles",
    metadata,
    _id("bundle", primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("manifest", Json, nullable=False),
    Column("first_used_at", UtcDateTime, nullable=False),
)

_WITHDRAWN = text("withdrawn")
_HIDDEN = text("hidden")

sessions = Table(
    "sessions",
    metadata,
    _id("session_id", primary_key=True),
    Column("domain", String(32), info=_IF_KNOWN),
    _id("channel", info=_IF_KNOWN),
    _id("team", info=_IF_KNOWN),
    Column("lang", String(35), info=_IF_KNOWN),
    Column("consent", Boolean),
    Column("started_at", UtcDateTime, info=_EARLIEST),
    Column("last_activity_at", UtcDateTime, info=_IF_KNOWN),
    Column("ended_at", UtcDateTime, info=_IF_KNOWN),
    Column("end_reason", Text, info=_IF_KNOWN),
    Column("stored_at", UtcDateTime),
    Column("withdrawn", Boolean, nullable=False, server_default=false()),
    Column("hidden", Boolean, nullable=False, server_default=false()),
    Index(None, "withdrawn", postgresql_where=_WITHDRAWN, sqlite_where=_WITHDRAWN),
    Index(None, "hidden", "session_id", postgresql_where=_HIDDEN, sqlite_where=_HIDDEN),
    Index(None, "team"),
)

consents = Table(
    "consents",
    metadata,
    Column("consent_id", String(36), primary_key=True),
    _id("session_id", nullable=False, index=True),
    Column("status", String(10), nullable=False),
    Column("effective", Boolean, nullable=False),
    Column("version", String(50)),
    Column("source", String(100)),
    Column("speaker", String(64), index=True),
    Column("seq", Integer),
    Column("occurred_at", UtcDateTime, nullable=False),
    Column("stored_at", UtcDateTime, nullable=False),
    Column("purposes", OptionalJson),
)

holds = Table(
    "holds",
    metadata,
    _id("session_id", primary_key=True),
    Column("reason", String(200), nullable=False),
    Column("person", String(100), nullable=False),
    Column("at", UtcDateTime, nullable=False),
)

session_states = Table(
    "session_states",
    metadata,
    _id("session_id", primary_key=True),
    _id("bundle", primary_key=True),
    Column("version", Integer, nullable=False),
    Column("status", String(8), nullable=False),
    Column("partition", Integer, nullable=False),
    Column("last_activity_at", UtcDateTime),
    Column("wake_at", UtcDateTime),
    Column("state", LargeBinary, nullable=False),
    Column("seen_at", UtcDateTime),
    Column("seen_period", Integer),
    Index(None, "bundle", "status", "seen_period"),
    Index(None, "bundle", "wake_at"),
)
"""``seen_period``: the ten minutes of ``seen_at`` (``store.periods``), which hardly ever change."""

window_turns = Table(
    "window_turns",
    metadata,
    _id("session_id", primary_key=True),
    _id("bundle", primary_key=True),
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("turn", LargeBinary, nullable=False),
)

_HAS_TEXT = text("text IS NOT NULL")

turns = Table(
    "turns",
    metadata,
    _id("session_id", primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    _id("turn_id"),
    Column("speaker", String(64), nullable=False),
    Column("role", String(10), nullable=False),
    Column("text", Text),
    Column("chars", Integer),
    Column("occurred_at", UtcDateTime, nullable=False),
    Column("late", Boolean, nullable=False),
    Column("produced_at", UtcDateTime),
    Column("stored_at", UtcDateTime, nullable=False),
    Column("words", Integer),
    Column("unscored", String(16)),
    Column("language", String(35)),
    Index(None, "stored_at", postgresql_where=_HAS_TEXT, sqlite_where=_HAS_TEXT),
)

turn_scores = Table(
    "turn_scores",
    metadata,
    _id("session_id", primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("stage", String(11), primary_key=True),
    _id("bundle", primary_key=True),
    Column("role", String(10), nullable=False),
    Column("occurred_at", UtcDateTime, nullable=False),
    Column("late", Boolean, nullable=False),
    Column("truncated", Boolean, nullable=False),
    Column("emotional_reactions", SmallInteger),
    Column("interpretations", SmallInteger),
    Column("explorations", SmallInteger),
    Column("empathy_total", SmallInteger),
    Column("confidence", Double, nullable=False),
    Column("low_empathy_risk", Double),
    *(Column(name, head_columns.Part(), nullable=False) for name in head_columns.NAMES),
    Column("abstained", Json, nullable=False),
    Column("intents", Json, nullable=False, server_default="{}"),
    *head_columns.columns(),
    Column(head_columns.RATIONALES, OptionalJson),
    Index(None, "occurred_at", postgresql_using="brin"),
)

shadow_bundles = Table(
    "shadow_bundles",
    metadata,
    _id("bundle", primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("manifest", Json, nullable=False),
    Column("first_used_at", UtcDateTime, nullable=False),
)

shadow_scores = Table(
    "shadow_scores",
    metadata,
    _id("session_id", primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("stage", String(11), primary_key=True),
    _id("bundle", primary_key=True),
    Column("expressed", Json, nullable=False),
    Column("perceived", Json, nullable=False),
    Column("client", Json, nullable=False),
    Column("abstained", Json, nullable=False),
)
"""Scores of ``rapport worker --shadow``: read by the agreement with people alone."""

session_scores = Table(
    "session_scores",
    metadata,
    _id("session_id", primary_key=True),
    _id("bundle", primary_key=True),
    Column("status", String(8), nullable=False),
    Column("started_at", UtcDateTime),
    Column("last_activity_at", UtcDateTime),
    Column("turns", Integer, nullable=False),
    Column("counsellor_turns", Integer, nullable=False),
    Column("late_turns", Integer, nullable=False),
    Column("withheld_turns", Integer, nullable=False),
    *(Column(measure.name, Double) for measure in catalogue.columns()),
    Column("missed_opportunities", Json),
    Column("outcome_risks", Json),
    Column("mechanisms", MechanismMeans, nullable=False),
    Column("miti", OptionalJson),
    Column("unscored_turns", Integer, nullable=False, server_default="0"),
    Column("activity_hour", Integer),
    Index(None, "status"),
    Index(None, "started_at", "session_id"),
    Index(None, "activity_hour", "session_id"),
)
"""``activity_hour``: of ``last_activity_at`` (``store.periods``). An index on a column that changes
with every turn makes PostgreSQL write to all indexes of the table; so no index has one."""

alerts = Table(
    "alerts",
    metadata,
    Column("alert_id", String(36), primary_key=True),
    Column("episode_id", String(36), nullable=False, index=True),
    Column("rule", String(100), nullable=False),
    Column("severity", String(8), nullable=False),
    Column("labels", Json, nullable=False),
    _id("session_id", nullable=False, index=True),
    _id("bundle", nullable=False),
    Column("state", String(12), nullable=False),
    Column("previous", String(12), nullable=False),
    Column("episode", Integer, nullable=False),
    Column("seq", Integer),
    Column("occurred_at", UtcDateTime, nullable=False),
    Column("reason", Text, nullable=False),
    Column("value", Double),
    Column("threshold", Double),
    Column("values", Json, nullable=False),
    Column("turns", Json, nullable=False),
    Column("rules_digest", String(16), nullable=False),
    Column("protocol", Text),
    Index(None, "rule"),
)

session_speakers = Table(
    "session_speakers",
    metadata,
    _id("session_id", primary_key=True),
    Column("speaker", String(64), primary_key=True),
    Column("role", String(10), primary_key=True),
    Column("reads", Boolean, nullable=False, server_default=true()),
    Index(None, "speaker"),
    Index(None, "role", "speaker"),
)

session_assignments = Table(
    "session_assignments",
    metadata,
    _id("session_id", primary_key=True),
    Column("speaker", String(64), primary_key=True),
    Column("person", String(100), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Index(None, "speaker"),
)

baselines = Table(
    "baselines",
    metadata,
    Column("scope", String(10), primary_key=True),
    _id("key", primary_key=True),
    _id("bundle", primary_key=True),
    Column("measure", String(10), primary_key=True),
    Column("n", Integer, nullable=False),
    Column("mean", Double, nullable=False),
    Column("sd", Double, nullable=False),
    Column("as_of", UtcDateTime, nullable=False),
)

outcomes = Table(
    "outcomes",
    metadata,
    _id("outcome_id", primary_key=True),
    _id("session_id", nullable=False, index=True),
    Column("seq", Integer),
    Column("kind", String(10), nullable=False),
    Column("value", Double, nullable=False),
    Column("occurred_at", UtcDateTime, nullable=False),
)

questionnaires = Table(
    "questionnaires",
    metadata,
    _id("questionnaire_id", primary_key=True),
    _id("session_id", nullable=False, index=True),
    Column("instrument", String(20), nullable=False),
    Column("items", Json, nullable=False),
    Column("occurred_at", UtcDateTime, nullable=False),
)
"""Answers of clients. Nothing that computes scores, measures or analyses reads this table."""

log_positions = Table(
    "log_positions",
    metadata,
    Column("consumer_group", String(255), primary_key=True),
    Column("topic", String(255), primary_key=True),
    Column("partition", Integer, primary_key=True, autoincrement=False),
    Column("next_offset", BigInteger, nullable=False),
    Column("at", UtcDateTime, nullable=False),
)

session_numbers = Table(
    "session_numbers",
    metadata,
    _id("session_id", primary_key=True),
    Column("next_seq", BigInteger),
    Column("at", UtcDateTime, nullable=False),
    Column("owner", String(32)),
)
"""``next_seq``: of the next turn without a number; null if the producer numbers the turns.
``owner``: a digest of who began the session; null if it was not begun through the gateway."""

ingest_keys = Table(
    "ingest_keys",
    metadata,
    Column("digest", String(32), primary_key=True),
    Column("fingerprint", String(32), nullable=False),
    Column("results", Json, nullable=False),
    Column("busy_until", UtcDateTime),
    Column("answered", Boolean, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Index(None, "at"),
)
"""Keyed digests of idempotency keys and request bodies. ``results``: without text."""

outbox = Table(
    "outbox",
    metadata,
    Column("id", AutoId, primary_key=True),
    Column("created_at", UtcDateTime, nullable=False),
    Column("messages", LargeBinary, nullable=False),
)

notification_targets = Table(
    "notification_targets",
    metadata,
    Column("target", String(100), primary_key=True),
    Column("added_at", UtcDateTime, nullable=False),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("alert_id", String(36), primary_key=True),
    Column("target", String(100), primary_key=True),
    Column("state", String(12), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("tried_at", UtcDateTime),
    Column("problem", String(200)),
    Column("held_at", UtcDateTime),
    Column("notification_id", String(36)),
    Column("slot_at", UtcDateTime),
    Index(None, "target", "slot_at"),
    Index(None, "target", "state"),
)

escalations = Table(
    "escalations",
    metadata,
    Column("alert_id", String(36), primary_key=True),
    Column("step", SmallInteger, primary_key=True, autoincrement=False),
    Column("recipient", String(100), primary_key=True),
    _id("session_id", nullable=False, index=True),
    Column("due_at", UtcDateTime, nullable=False),
    Column("state", String(12), nullable=False),
    Column("target", String(100)),
    Column("attempts", Integer, nullable=False),
    Column("tried_at", UtcDateTime),
    Column("problem", String(200)),
    Index(None, "state", "due_at"),
)

installation = Table(
    "installation",
    metadata,
    Column("name", String(50), primary_key=True),
    Column("value", String(200), nullable=False),
)

people = Table(
    "people",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("role", String(12), nullable=False),
    _id("team"),
    Column("speaker", String(64)),
    Column("password_hash", String(200)),
    Column("created_at", UtcDateTime, nullable=False),
    Column("disabled_at", UtcDateTime),
    Column("all_teams", Boolean, nullable=False, server_default=false()),
    Column("identity", String(500)),
    Column("initial_password", Boolean, nullable=False, server_default=false()),
    Column("toured_at", UtcDateTime),
)

access_tokens = Table(
    "access_tokens",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("person", String(100), nullable=False),
    Column("label", String(100), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    _id("team"),
    _id("domain"),
    _id("channel"),
    Column("last_used_at", UtcDateTime),
    Column("rights", String(100)),
)

saved_views = Table(
    "saved_views",
    metadata,
    Column("person", String(100), primary_key=True),
    Column("name", String(100), primary_key=True),
    Column("query", String(2000), nullable=False),
    Column("counsellor", String(64)),
    Column("at", UtcDateTime, nullable=False),
)

pins = Table(
    "pins",
    metadata,
    Column("person", String(100), primary_key=True),
    _id("session_id", primary_key=True),
    Column("at", UtcDateTime, nullable=False),
)

presence = Table(
    "presence",
    metadata,
    _id("session_id", primary_key=True),
    Column("person", String(100), primary_key=True),
    Column("seen_at", UtcDateTime, nullable=False),
)

studies = Table(
    "studies",
    metadata,
    _id("study_id", primary_key=True),
    Column("person", String(100), primary_key=True),
    Column("until", UtcDateTime, nullable=False),
    Column("at", UtcDateTime, nullable=False),
)

sign_in_attempts = Table(
    "sign_in_attempts",
    metadata,
    Column("digest", String(32), primary_key=True),
    Column("refused", Integer, nullable=False),
    Column("last_at", UtcDateTime, nullable=False),
    Column("succeeded_at", UtcDateTime),
)

alert_actions = Table(
    "alert_actions",
    metadata,
    Column("action_id", String(36), primary_key=True),
    Column("episode_id", String(36), nullable=False, index=True),
    _id("session_id", nullable=False),
    Column("kind", String(12), nullable=False),
    Column("reason", String(50)),
    Column("note", Text),
    Column("person", String(100), nullable=False),
    Column("at", UtcDateTime, nullable=False),
)

_UNPUBLISHED = text("published_at IS NULL")

interventions = Table(
    "interventions",
    metadata,
    Column("intervention_id", String(36), primary_key=True),
    _id("session_id", nullable=False),
    Column("kind", String(12), nullable=False),
    Column("text", Text),
    Column("episode_id", String(36)),
    Column("person", String(100), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("published_at", UtcDateTime),
    Column("received_by", String(100)),
    Column("received_at", UtcDateTime),
    Index(None, "session_id", "at"),
    Index(None, "published_at", postgresql_where=_UNPUBLISHED, sqlite_where=_UNPUBLISHED),
)

rule_versions = Table(
    "rule_versions",
    metadata,
    Column("version", AutoId, primary_key=True),
    Column("text", Text, nullable=False),
    Column("digest", String(16), nullable=False),
    Column("person", String(100), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("reason", String(500), nullable=False),
)

rule_adoptions = Table(
    "rule_adoptions",
    metadata,
    Column("id", AutoId, primary_key=True),
    Column("version", AutoId, nullable=False),
    Column("person", String(100), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("reason", String(500), nullable=False),
)
"""The version of the newest row is in force."""

mutes = Table(
    "mutes",
    metadata,
    Column("mute_id", String(36), primary_key=True),
    Column("rule", String(100)),
    _id("session_id"),
    _id("team"),
    Column("until", UtcDateTime, nullable=False),
    Column("reason", Text),
    Column("person", String(100), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
)

samples = Table(
    "samples",
    metadata,
    Column("sample_id", String(36), primary_key=True),
    Column("title", String(100), nullable=False),
    Column("bundle", String(MAX_ID_CHARS), nullable=False),
    Column("team", String(MAX_ID_CHARS)),
    Column("seed", BigInteger, nullable=False),
    Column("person", String(100), nullable=False),
    Column("at", UtcDateTime, nullable=False),
)

sample_turns = Table(
    "sample_turns",
    metadata,
    Column("sample_id", String(36), primary_key=True),
    Column("place", Integer, primary_key=True, autoincrement=False),
    _id("session_id", nullable=False),
    Column("seq", Integer, nullable=False),
)

ratings = Table(
    "ratings",
    metadata,
    Column("rating_id", String(36), primary_key=True),
    _id("session_id", nullable=False),
    Column("seq", Integer),
    Column("head", String(50), nullable=False),
    Column("value", SmallInteger, nullable=False),
    Column("sample_id", String(36)),
    Column("person", String(100), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Index(None, "session_id", "seq"),
    Index(None, "sample_id"),
)

rating_comments = Table(
    "rating_comments",
    metadata,
    Column("comment_id", String(36), primary_key=True),
    _id("session_id", nullable=False, index=True),
    Column("seq", Integer),
    Column("comment", Text, nullable=False),
    Column("person", String(100), nullable=False),
    Column("at", UtcDateTime, nullable=False),
)

disputes = Table(
    "disputes",
    metadata,
    Column("dispute_id", String(36), primary_key=True),
    _id("session_id", nullable=False, index=True),
    Column("seq", Integer, nullable=False),
    Column("head", String(50), nullable=False),
    _id("bundle", nullable=False),
    Column("value", SmallInteger, nullable=False),
    Column("proposed", SmallInteger),
    Column("note", Text, nullable=False),
    Column("person", String(100), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("decision", String(10)),
    Column("decided_by", String(100)),
    Column("decided_at", UtcDateTime),
    Column("answer", Text),
)

reviews = Table(
    "reviews",
    metadata,
    Column("review_id", String(36), primary_key=True),
    _id("session_id", nullable=False, index=True),
    Column("episode_id", String(36)),
    Column("reviewer", String(100), nullable=False),
    Column("person", String(100), nullable=False),
    Column("origin", String(10), nullable=False),
    Column("pair_id", String(36), index=True),
    Column("scorecard", Json, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("due_at", UtcDateTime, nullable=False),
    Column("signed_at", UtcDateTime),
    Index(None, "reviewer", "signed_at"),
)
"""``person`` assigned it. ``pair_id``: of a double review. ``scorecard``: as when assigned."""

review_answers = Table(
    "review_answers",
    metadata,
    Column("review_id", String(36), primary_key=True),
    Column("criterion", String(50), primary_key=True),
    _id("session_id", nullable=False, index=True),
    Column("value", SmallInteger, nullable=False),
    Column("auto_value", SmallInteger),
    Column("at", UtcDateTime, nullable=False),
)
"""``value``: the person's answer; ``auto_value``: what the scores gave when it was saved."""

review_comments = Table(
    "review_comments",
    metadata,
    Column("comment_id", String(36), primary_key=True),
    Column("review_id", String(36), nullable=False, index=True),
    _id("session_id", nullable=False, index=True),
    Column("seq", Integer, nullable=False),
    Column("comment", Text, nullable=False),
    Column("person", String(100), nullable=False),
    Column("at", UtcDateTime, nullable=False),
)

proposals = Table(
    "proposals",
    metadata,
    _id("session_id", primary_key=True),
    Column("question_key", String(64), primary_key=True),
    Column("model", String(100), primary_key=True),
    Column("question", String(300), nullable=False),
    Column("answer", String(300)),
    Column("value", SmallInteger),
    Column("seq", Integer),
    Column("quote_start", Integer),
    Column("quote_end", Integer),
    Column("dropped", String(20)),
    Column("at", UtcDateTime, nullable=False),
)
"""A language model's answers to asked questions. The quote is not stored, only where it stands: it
is read, hidden and purged with the turn's text. ``dropped``: why the answer is no proposal.
"""

coaching_goals = Table(
    "coaching_goals",
    metadata,
    Column("goal_id", String(36), primary_key=True),
    Column("counsellor", String(64), nullable=False, index=True),
    Column("person", String(100), nullable=False),
    Column("measure", String(32), nullable=False),
    Column("goal", Text, nullable=False),
    Column("starts_on", Date, nullable=False),
    Column("ends_on", Date, nullable=False),
    Column("state", String(10), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("target", Double),
)
"""``goal`` is encrypted with a key of its own, under ``goal_id``, as the reasons of mutes are."""

drift_changes = Table(
    "drift_changes",
    metadata,
    Column("change_id", String(36), primary_key=True),
    Column("name", String(100), nullable=False),
    Column("measure", String(200), nullable=False),
    Column("about", String(200), nullable=False),
    Column("since", UtcDateTime, nullable=False),
    Column("value", Double, nullable=False),
    Column("found_at", UtcDateTime, nullable=False),
    Column("acknowledged_at", UtcDateTime),
    Column("person", String(100)),
)

audit = Table(
    "audit",
    metadata,
    Column("id", AutoId, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("person", String(100), nullable=False),
    Column("action", String(30), nullable=False),
    Column("subject", String(64), index=True),
    Column("detail", String(500)),
    Column("hash", String(64), nullable=False),
)

audit_subjects = Table(
    "audit_subjects",
    metadata,
    Column("subject", String(64), primary_key=True),
    Column("kind", String(10), nullable=False),
    _id("value", nullable=False, index=True),
    Column("salt", String(32)),
)

session_keys = Table(
    "session_keys",
    metadata,
    _id("session_id", primary_key=True),
    Column("master_key", String(16), nullable=False),
    Column("wrapped", LargeBinary, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

erasures = Table(
    "erasures",
    metadata,
    Column("digest", String(32), primary_key=True),
    Column("at", UtcDateTime, nullable=False),
)

erasure_receipts = Table(
    "erasure_receipts",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("digest", String(32), nullable=False, index=True),
    Column("at", UtcDateTime, nullable=False, index=True),
    Column("removed", Json, nullable=False),
    _id("unfinished"),
    Column("archived", Boolean, nullable=False),
    Column("receipt", OptionalJson),
)
"""``unfinished``: the session's id, until topics and archive were handled. Its name differs from
``session_id`` because the row outlasts the erasure."""

archived_sessions = Table(
    "archived_sessions",
    metadata,
    _id("session_id", primary_key=True),
    Column("month", Date, nullable=False),
    _id("team"),
    Column("started_at", UtcDateTime, nullable=False),
    Column("stored_at", UtcDateTime, nullable=False),
    Column("archived_at", UtcDateTime, nullable=False),
    Index(None, "month"),
    Index(None, "team"),
)
"""Sessions whose facts are in the archive's files; without a row here, nobody reads them there."""

rollup_marks = Table(
    "rollup_marks",
    metadata,
    Column("id", AutoId, primary_key=True),
    _id("session_id"),
    Column("month", Date),
)

ROLLED_UP = catalogue.short_names(Use.ROLL_UPS)
"""Measures of a session, in ten-thousandths: sums of integers do not depend on their order."""

rollup_sessions = Table(
    "rollup_sessions",
    metadata,
    _id("session_id", primary_key=True),
    _id("bundle", primary_key=True),
    Column("day", Date, nullable=False),
    Column("week", Date, nullable=False),
    Column("month", Date, nullable=False),
    _id("team", nullable=False),
    Column("domain", String(32), nullable=False),
    Column("turns", Integer, nullable=False),
    Column("counsellor_turns", Integer, nullable=False),
    *(Column(name, BigInteger) for name in ROLLED_UP),
    Index(None, "month"),
)

WORDS_FROM = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 256)
"""Bins of the histogram of turns' words: their lower bounds; the last one is open."""
_LEVELS = range(3)
TURN_SUMS = (
    "turns",
    "late",
    "truncated",
    "confidence",
    "words_n",
    "words",
    *(f"words_{number}" for number in range(len(WORDS_FROM))),
    *(
        f"{mechanism}_{part}"
        for mechanism in MECHANISMS
        for part in ("n", "total", "abstained", *(f"level_{level}" for level in _LEVELS))
    ),
    *(f"{head}_{part}" for head in PERCEIVED for part in ("n", "total", "abstained")),
)
"""What turns add up to: counts, and sums (``confidence``, ``…_total``) in ten-thousandths."""

_OF_TURNS = (
    ("day", Date),
    ("bundle", String(MAX_ID_CHARS)),
    ("team", String(MAX_ID_CHARS)),
    ("domain", String(32)),
    ("channel", String(MAX_ID_CHARS)),
    ("lang", String(35)),
    ("role", String(10)),
)

rollup_turns = Table(
    "rollup_turns",
    metadata,
    _id("session_id", primary_key=True),
    *(
        Column(name, kind, primary_key=name in ("bundle", "role"), nullable=False)
        for name, kind in _OF_TURNS
    ),
    Column("month", Date, nullable=False),
    *(Column(name, BigInteger, nullable=False) for name in TURN_SUMS),
    Index(None, "month"),
)
"""Sums over the turns of a session and role. ``day`` is the session's, as in all roll-ups."""

rollup_turn_days = Table(
    "rollup_turn_days",
    metadata,
    *(Column(name, kind, primary_key=True) for name, kind in _OF_TURNS),
    Column("month", Date, nullable=False),
    Column("sessions", Integer, nullable=False),
    *(Column(name, BigInteger, nullable=False) for name in TURN_SUMS),
    Index(None, "month"),
)

rollup_counsellors = Table(
    "rollup_counsellors",
    metadata,
    Column("speaker", String(64), primary_key=True),
    Column("joined", Date, nullable=False),
)

_CELL = (
    ("kind", String(12)),
    ("start", Date),
    ("bundle", String(MAX_ID_CHARS)),
    ("team", String(MAX_ID_CHARS)),
    ("domain", String(32)),
    ("cohort", Integer),
    ("counsellor", String(64)),
)

rollup_cells = Table(
    "rollup_cells",
    metadata,
    *(Column(name, kind, primary_key=True, autoincrement=False) for name, kind in _CELL),
    Column("month", Date, nullable=False),
    Column("until", Date, nullable=False),
    Column("sessions", Integer, nullable=False),
    Column("turns", Integer, nullable=False),
    Column("counsellor_turns", Integer, nullable=False),
    Column("clients", Integer, nullable=False),
    Column("counsellors", Integer, nullable=False),
    Column("hidden", Boolean, nullable=False),
    Index(None, "month"),
)

rollup_means = Table(
    "rollup_means",
    metadata,
    *(Column(name, kind, primary_key=True, autoincrement=False) for name, kind in _CELL),
    Column("measure", String(32), primary_key=True),
    Column("month", Date, nullable=False),
    Column("until", Date, nullable=False),
    Column("n", Integer, nullable=False),
    Column("total", BigInteger, nullable=False),
    Column("squares", BigInteger, nullable=False),
    Column("hidden", Boolean, nullable=False),
    Index(None, "month"),
    Index(None, "kind", "measure", "start"),
)
