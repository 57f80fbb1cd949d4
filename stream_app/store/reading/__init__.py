"""What people and programs read: sessions, transcripts with scores, alerts.

Every call takes a ``Scope``, so that nobody reads what is not theirs by a forgotten condition.
"""
