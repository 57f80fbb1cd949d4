"""Keys of sessions and of pseudonyms, which the database holds sealed."""

__all__ = [
    "pseudonym_key",
    "session_keys",
]
