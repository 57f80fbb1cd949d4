"""The source of truth: SQLAlchemy tables, idempotent upserts, one transaction a batch.

Start at ``repository.open_store``; ``reading`` has the queries of the API and the console.
"""

__all__ = [
    "alert_actions",
    "attempts",
    "audit",
    "baselines",
    "connection",
    "deliveries",
    "disputes",
    "erasure",
    "interventions",
    "judged",
    "log_positions",
    "outbox",
    "people",
    "ratings",
    "reading",
    "repository",
    "retention",
    "rows",
    "samples",
    "schema",
    "tables",
    "windows",
]
