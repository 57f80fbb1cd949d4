"""Passwords: which are accepted, and their hashes."""

import calendar
import re
from collections.abc import Iterable
from typing import Final

from pwdlib import PasswordHash

from stream_app.store.accounts.people import PersonError

MIN_CHARS: Final = 12
MAX_CHARS: Final = 256
MIN_SCORE: Final = 3
"""Lowest score, of 0 to 4: more than 10^8 guesses by who knows common passwords and patterns."""
ESTIMATED_CHARS: Final = 72
"""The estimate takes quadratic time."""
SERVICE_WORDS: Final = ("rapport", "empathy", "counselling", "counseling", "counsellor")
SEASON_WORDS: Final = (
    *("spring", "summer", "autumn", "winter", "fall", "easter", "christmas", "xmas"),
    *(name.lower() for name in (*calendar.month_name[1:], *calendar.day_name)),
)
COMMON_WORDS: Final = ("password", "welcome", "letmein", "login", "admin", "secret", "change")
MIN_WORD: Final = 3
OWN_LETTERS: Final = 5
"""Different letters that a password needs beside words that everybody here knows."""
_LOOKALIKES: Final = str.maketrans("01345@$!|", "oieasasil")
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
    known = [*SERVICE_WORDS, *SEASON_WORDS, *COMMON_WORDS, name]
    if _is_made_of(password, known):
        raise PersonError("this password is too easy to guess: everybody here knows its words")
    estimate = zxcvbn(password[:ESTIMATED_CHARS], known, max_length=ESTIMATED_CHARS)
    if estimate["score"] < MIN_SCORE:
        why = estimate["feedback"]["warning"]
        raise PersonError(f"this password is too easy to guess{f': {why}' if why else ''}")
    return hash_password(password)


def _is_made_of(password: str, words: Iterable[str]) -> bool:
    """Whether the password has one of these words, in any spelling, and hardly a letter beside.

    >>> _is_made_of("R4pport-Summer-2026!", ["rapport", "summer"])
    True
    >>> _is_made_of("summer of grey herons", ["rapport", "summer"])
    False
    """
    lower = password.lower()
    spelled = lower.translate(_LOOKALIKES)
    known = {word.lower().translate(_LOOKALIKES) for word in words if len(word) >= MIN_WORD}
    longest_first = sorted(known, key=len, reverse=True)
    rest = re.sub(
        "|".join(map(re.escape, longest_first)), lambda found: " " * len(found[0]), spelled
    )
    own = {char for char, left in zip(lower, rest, strict=True) if left != " " and char.isalpha()}
    return rest != spelled and len(own) < OWN_LETTERS
