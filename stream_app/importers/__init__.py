"""Importers: conversations as other programs record them, as events for Rapport.

``transcripts``, ``convokit`` and ``chats`` read files; ``matrix``, ``slack``, ``twilio``,
``intercom`` and ``zendesk`` read messages of their services; ``matrix_bridge`` and ``webhooks``
receive them live.
All yield events for ``stream_app.client``, and what they leave out, with the reason;
``delivery`` sends them to the service or writes them as JSON lines.
"""

__all__ = [
    "chats",
    "convokit",
    "delivery",
    "imported",
    "intercom",
    "matrix",
    "matrix_bridge",
    "slack",
    "transcripts",
    "twilio",
    "webhooks",
    "zendesk",
]
