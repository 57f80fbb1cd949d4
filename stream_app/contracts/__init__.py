"""Message types: incoming events (``events``), outgoing messages (``scores``), and their schemas.

Start at ``events.decode`` and ``scores.TurnScore``.
"""

__all__ = [
    "asyncapi",
    "batch_body",
    "cloudevents",
    "events",
    "framing",
    "interventions",
    "json_bytes",
    "numbering",
    "plausible",
    "questionnaires",
    "schema",
    "scores",
    "surrogates",
    "utf16",
]
