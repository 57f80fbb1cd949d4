"""Exports of sessions and turns, streamed page by page, as tables or ConvoKit corpora.

Speakers are numbered within each session, so an export does not link a person's sessions.
"""

__all__ = ["columns", "convokit", "files", "formats", "paging"]
