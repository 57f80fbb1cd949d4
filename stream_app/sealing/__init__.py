"""Encrypts what people said: a data key per session, wrapped by a master key outside the database.

``envelope`` seals values with a session's data key, ``keyring`` wraps data keys, ``sources`` reads
and creates the key files.
"""

__all__ = ["envelope", "keyring", "sources"]
