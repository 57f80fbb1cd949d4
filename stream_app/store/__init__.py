"""The database: SQLAlchemy tables, idempotent upserts, one transaction per batch.

Start at ``repository.open_store``; ``queries`` has the queries of the API and the console.
"""

__all__ = [
    "alert_actions",
    "assignments",
    "audit",
    "baselines",
    "calibration_samples",
    "claims",
    "connection",
    "deliveries",
    "disputes",
    "encrypting",
    "erasure",
    "interventions",
    "log_positions",
    "outbox",
    "people",
    "pseudonym_key",
    "queries",
    "ratings",
    "repository",
    "retention",
    "rollup_marks",
    "rows",
    "schema",
    "scored_turns",
    "secrets",
    "session_keys",
    "sign_in_throttle",
    "studies",
    "tables",
    "windows",
]
