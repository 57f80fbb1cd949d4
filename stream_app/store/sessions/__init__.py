"""Reads of sessions and turns, each limited to a ``Scope``."""

__all__ = [
    "bundle_info",
    "bundles",
    "clearest_turns",
    "comparable",
    "consents",
    "counsellors",
    "exchanges",
    "filter_choices",
    "history",
    "live_sessions",
    "recorded_sessions",
    "routing",
    "scope",
    "scored_turns",
    "sessions",
    "transcripts",
    "turn_levels",
]
