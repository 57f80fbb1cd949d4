"""Importers: conversations as other programs record them, as events for Rapport.

``transcripts`` and ``convokit`` read files; ``matrix``, ``slack``, ``twilio``, ``intercom`` and
``zendesk`` read messages of their services; ``matrix_bridge`` and ``webhooks`` receive them live.
All yield events for ``stream_app.client``, and what they leave out, with the reason.
"""

__all__ = ["convokit", "imported", "transcripts"]
