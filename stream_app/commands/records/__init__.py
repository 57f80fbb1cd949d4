"""Commands over stored records: people, keys, consent, holds, erasure, audit."""

__all__ = [
    "audit",
    "consent",
    "erase",
    "hold",
    "keys",
    "people",
    "purge",
    "subject_access",
]
