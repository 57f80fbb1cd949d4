"""Answers on disk, so that a second run asks, and pays, only for what is new.

The key is a digest of endpoint, model, prompt and parameters. The file holds keys, labels, spans of
characters, probabilities and numbers of attempts: neither prompts nor words of transcripts.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
from msgspec import Struct

from research.second_coder.answers import Answer
from research.second_coder.prompt import Prompt


class CacheError(RuntimeError):
    """The cache cannot be used."""


class CachedAnswer(Struct, frozen=True):
    """A valid answer, and how many requests it took."""

    answer: Answer
    attempts: int


class AnswerCache:
    """Valid answers by key in an SQLite file that only its owner can read.

    Args:
        path: the file; it and its folder are created.

    Raises:
        CacheError: the file cannot be opened, or is no such file.
    """

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            self._connection = sqlite3.connect(path)
            self._run("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer BLOB)")
        except (OSError, sqlite3.Error) as problem:
            raise CacheError(f"the cache {path} cannot be used: {problem}") from None
        self.path = path

    def find(self, key: str) -> CachedAnswer | None:
        """The answer with this key; None also if it cannot be decoded."""
        query = "SELECT answer FROM answers WHERE key = ?"
        row = self._connection.execute(query, (key,)).fetchone()
        if row is None:
            return None
        try:
            return msgspec.json.decode(row[0], type=CachedAnswer)
        except msgspec.DecodeError:
            return None

    def keep(self, key: str, answer: CachedAnswer) -> None:
        """Store an answer; it survives a crash of the run."""
        content = msgspec.json.encode(answer)
        self._run("INSERT OR REPLACE INTO answers VALUES (?, ?)", key, content)

    def _run(self, statement: str, *values: object) -> None:
        with self._connection, closing(self._connection.cursor()) as cursor:
            cursor.execute(statement, values)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def key_of(endpoint: str, model: str, prompt: Prompt, parameters: dict[str, object]) -> str:
    """Digest of all that determines an answer, hexadecimal.

    >>> key_of("http://[::1]/v1", "m", Prompt(()), {})[:8]
    'da208ab8'
    """
    content = [endpoint, model, list(prompt.messages), prompt.schema, parameters]
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()
