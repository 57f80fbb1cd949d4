"""Passwords: which are accepted, and their hashes."""

from typing import Final

from pwdlib import PasswordHash

from stream_app.store.people import PersonError

MIN_CHARS: Final = 12
MAX_CHARS: Final = 256
MIN_SCORE: Final = 3
"""Of 0 to 4: more than 10^8 guesses for somebody who knows common passwords and patterns."""
ESTIMATED_CHARS: Final = 72
"""The estimate takes quadratic time."""
SERVICE_WORDS: Final = ("rapport",)
_hashes = PasswordHash.recommended()


def hash_password(password: str) -> str:
    """Hash with Argon2id at the library's recommended cost."""
    return _hashes.hash(password)


def verify_password(password: str, expected: str) -> bool:
    """Whether the password has this hash."""
    return _hashes.verify(password, expected)


def hash_new_password(password: str, name: str) -> str:
    """Hash a password that somebody has chosen for the account ``name``.

    Raises:
        PersonError: it is too short, too long, or among the first that an attacker would try.
    """
    from zxcvbn import zxcvbn  # noqa: PLC0415  # its word lists are needed for new passwords only

    if not MIN_CHARS <= len(password) <= MAX_CHARS:
        raise PersonError(f"a password needs {MIN_CHARS} to {MAX_CHARS} characters")
    known = [*SERVICE_WORDS, name]
    estimate = zxcvbn(password[:ESTIMATED_CHARS], known, max_length=ESTIMATED_CHARS)
    if estimate["score"] < MIN_SCORE:
        why = estimate["feedback"]["warning"]
        raise PersonError(f"this password is too easy to guess{f': {why}' if why else ''}")
    return hash_password(password)
