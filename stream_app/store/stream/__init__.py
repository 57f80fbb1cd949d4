"""What a worker reads and writes with each batch. Start at ``repository.open_store``."""

__all__ = [
    "baselines",
    "claims",
    "ingest_keys",
    "left_states",
    "log_positions",
    "outbox",
    "past_sessions",
    "repository",
    "schema",
    "shadow_scores",
    "turn_numbers",
    "windows",
    "withdrawal",
]
