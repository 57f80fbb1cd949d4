"""The console and the API: a FastAPI application over the store, with live events from Kafka.

Start at ``app.create``; ``api`` and ``console`` are its two halves.
"""

__all__ = [
    "access_log",
    "account_changes",
    "agreement_words",
    "analysis_files",
    "app",
    "auth",
    "batch_body",
    "connection_timeouts",
    "cookie_sessions",
    "exports",
    "health",
    "identity_provider",
    "ingest",
    "intervention_outbox",
    "known_intents",
    "live_hub",
    "log_ends",
    "metrics",
    "passwords",
    "practice_model",
    "publisher",
    "report",
    "services",
    "summary",
    "topic_reader",
    "unknown_senders",
    "warm_up",
]
