"""Redaction and pseudonyms of a turn before it is stored."""

import hashlib

from msgspec import Struct

from stream_app.redaction.mask import redact
from stream_app.redaction.port import Redactor
from stream_app.redaction.rules import Rules


class Privacy(Struct, frozen=True):
    """``key``: secret of the installation, makes pseudonyms; ``later``: keys of its rotations.

    ``hide_withdrawn``: sessions whose consent was withdrawn cannot be read.
    """

    key: bytes
    redact: bool = True
    later: tuple[bytes, ...] = ()
    redactor: Redactor = Rules()
    hide_withdrawn: bool = True

    def pseudonym(self, speaker_id: str) -> str:
        """The same speaker always gets the same pseudonym; 32 hex digits."""
        name = speaker_id
        for key in (self.key, *self.later):
            name = pseudonym_of(name, key)
        return name

    def redacted(self, text: str) -> str:
        """``text`` with personal details masked, if redaction is on."""
        return self.masked(text) if self.redact else text

    def masked(self, text: str) -> str:
        """``text`` with personal details masked, whether redaction is on or not."""
        return redact(text, self.redactor)


def pseudonym_of(name: str, key: bytes) -> str:
    """One step of the chain: a name, or the pseudonym under the key before, under this key."""
    return hashlib.blake2b(name.encode(), key=key[:64], digest_size=16).hexdigest()
