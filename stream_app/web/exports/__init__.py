"""Exports of sessions and turns, streamed page by page: rows in three formats, ConvoKit corpora.

Speakers are numbered within each session: an export says nothing about a person over sessions.
"""

__all__ = ["columns", "convokit", "formats", "reading"]
