"""Exports, streamed page by page: tables, and ConvoKit corpora of sessions with their turns.

Speakers are numbered within each session, so an export does not link a person's sessions.
"""

__all__ = [
    "alerts",
    "columns",
    "convokit",
    "files",
    "formats",
    "judgements",
    "paging",
    "person",
    "rollups",
    "spreadsheet",
    "tables",
]
