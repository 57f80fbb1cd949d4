"""Queries of the API and the console: sessions, transcripts with scores, alerts.

Functions that return people's data take a ``Scope``, so that no query forgets the access check.
"""

__all__ = [
    "agreement",
    "alerts",
    "bundle_info",
    "bundles",
    "clearest_turns",
    "comparable",
    "consents",
    "counsellors",
    "development",
    "exchanges",
    "filter_choices",
    "history",
    "judged_turns",
    "live_sessions",
    "open_alerts",
    "pages",
    "precision",
    "recorded_sessions",
    "routing",
    "scope",
    "service_facts",
    "sessions",
    "transcripts",
    "turn_levels",
]
