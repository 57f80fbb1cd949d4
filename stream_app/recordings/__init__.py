"""Recorded conversations: read from files, scored, replayed, and rules and intents tried on them.

Start at ``event_files`` for what a file may contain, and at ``scoring`` for its scores.
"""

__all__ = [
    "event_files",
    "intent_suggestions",
    "intent_tests",
    "json_lines",
    "offline_batches",
    "past_of_file",
    "replay",
    "rule_backtest",
    "scoring",
    "whole_file",
]
