"""Encrypts values with a data key: AES-256-GCM with a random nonce per value.

The place of a value (column and row) is associated data, so that a value copied to another place
cannot be decrypted. ::

    bytes   C1 | nonce (12) | ciphertext and tag    C1 begins no MessagePack value
    text    U+FDD0 | base64 of nonce, ciphertext and tag

Values without a mark were stored by release 0.1, and are returned unchanged.
"""

import binascii
import secrets
from base64 import b64decode, b64encode
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from stream_app.errors import SealingError

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
MARK: Final = b"\xc1"
TEXT_MARK: Final = "\ufdd0"
"""A Unicode noncharacter, which does not occur in text."""


def new_key() -> bytes:
    """A random 256-bit key."""
    return secrets.token_bytes(KEY_BYTES)


def encrypt(key: bytes, plain: bytes, place: str) -> bytes:
    """Return nonce, ciphertext and tag."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plain, place.encode())


def decrypt(key: bytes, sealed: bytes, place: str) -> bytes:
    """Return the plain bytes.

    Raises:
        SealingError: the key or the place is another one, or the bytes were changed.
    """
    try:
        return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], place.encode())
    except (InvalidTag, ValueError):  # a ValueError: too short to have a nonce
        raise SealingError("a value cannot be decrypted with this key at this place") from None


def seal(key: bytes, plain: bytes, place: str) -> bytes:
    """Encrypt the value of a binary column."""
    return MARK + encrypt(key, plain, place)


def unseal(key: bytes | None, stored: bytes, place: str) -> bytes:
    """Decrypt the value of a binary column.

    Raises:
        SealingError: it cannot be decrypted; also without a key.
    """
    if not stored.startswith(MARK):
        return stored
    if key is None:
        raise SealingError("the key of a value is gone: its session was erased")
    return decrypt(key, stored[1:], place)


def seal_text(key: bytes, text: str, place: str) -> str:
    """Encrypt the value of a text column.

    >>> key = new_key()
    >>> unseal_text(key, seal_text(key, "I failed again.", "turns.text s 0"), "turns.text s 0")
    'I failed again.'
    """
    return TEXT_MARK + b64encode(encrypt(key, text.encode(), place)).decode()


def unseal_text(key: bytes | None, stored: str, place: str) -> str:
    """Decrypt the value of a text column.

    Raises:
        SealingError: it cannot be decrypted; also without a key.
    """
    if not is_sealed(stored):
        return stored
    if key is None:
        raise SealingError("the key of a text is gone: its session was erased")
    try:
        sealed = b64decode(stored[1:], validate=True)
    except binascii.Error:
        raise SealingError("a sealed text is damaged") from None
    return decrypt(key, sealed, place).decode()


def is_sealed(stored: str) -> bool:
    """Whether a stored text is encrypted."""
    return stored.startswith(TEXT_MARK)
