"""Master keys wrap data keys: the first wraps, all can unwrap."""

import hashlib
from typing import Final

from msgspec import Struct

from stream_app.errors import SealingError
from stream_app.sealing.envelope import decrypt, encrypt
from stream_app.sealing.sources import KeySource

_ID_BYTES: Final = 8


class Wrapped(Struct, frozen=True):
    """An encrypted data key; ``master_key``: id of the key that encrypted it."""

    master_key: str
    sealed: bytes


class MasterKeys:
    """The master keys of an installation; a changed file is reloaded."""

    def __init__(self, source: KeySource) -> None:
        self.source = source

    @property
    def active(self) -> str:
        """The id of the key that wraps."""
        return key_id(self.source.read()[0])

    @property
    def ids(self) -> list[str]:
        """The ids of all keys."""
        return [key_id(key) for key in self.source.read()]

    def wrap(self, data_key: bytes, session_id: str) -> Wrapped:
        """Wrap a session's data key with the active key."""
        key = self.source.read()[0]
        return Wrapped(key_id(key), encrypt(key, data_key, _place(session_id)))

    def unwrap(self, wrapped: Wrapped, session_id: str) -> bytes:
        """A session's data key.

        Raises:
            SealingError: its master key is not among these, or it is damaged.
        """
        for key in self.source.read():
            if key_id(key) == wrapped.master_key:
                return decrypt(key, wrapped.sealed, _place(session_id))
        raise SealingError(
            f"the master key {wrapped.master_key} is missing: RAPPORT_{self.source.setting} and "
            f"RAPPORT_{self.source.setting}_FILE hold {', '.join(self.ids)}"
        )


def key_id(key: bytes) -> str:
    """An identifier of a key that does not reveal it."""
    return hashlib.blake2b(key, digest_size=_ID_BYTES, person=b"rapport key id").hexdigest()


def _place(session_id: str) -> str:
    return f"session_keys.wrapped\0{session_id}"
