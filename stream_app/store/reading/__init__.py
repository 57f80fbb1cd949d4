"""What people and programs read: sessions, transcripts with scores, alerts.

Every call takes a ``Scope``, so that nobody reads what is not theirs by a forgotten condition.
"""

__all__ = [
    "agreement",
    "alerts",
    "bundle_facts",
    "bundles",
    "cohorts",
    "counsellors",
    "facts",
    "history",
    "levels",
    "pages",
    "precision",
    "scope",
    "sessions",
    "teams",
    "transcripts",
]
