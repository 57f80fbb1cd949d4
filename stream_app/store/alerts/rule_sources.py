"""Where the rules in force come from: a file, or the newest adopted version in the database."""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from stream_app.core.measures.heads import Head
from stream_app.core.measures.intents import NO_INTENTS, IntentSet
from stream_app.core.rules.intent_variables import catalogue
from stream_app.core.rules.rule_file import RuleFileError, parse
from stream_app.core.rules.rules import RuleSet
from stream_app.store.alerts import rule_versions
from stream_app.store.stream.repository import Store


class RuleText(Struct, frozen=True):
    """The text of rules; ``name`` is how messages call it. ``version`` None: it is a file's."""

    name: str
    raw: bytes
    version: int | None = None


class RuleSource(Protocol):
    """Reads the text of the rules in force."""

    def read(self) -> RuleText:
        """Read the text.

        Raises:
            RuleFileError: it cannot be read.
            StoreError: the database does not answer.
        """


class RuleFile:
    """The rules in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> RuleText:
        """Read the file."""
        try:
            return RuleText(str(self._path), self._path.read_bytes())
        except OSError as problem:
            raise RuleFileError([f"{self._path}: cannot be read: {problem.strerror}"]) from None


class AdoptedRules:
    """The newest adopted version; the file as long as no version was adopted."""

    def __init__(self, store: Store, file: Path) -> None:
        self._store = store
        self._file = RuleFile(file)

    def read(self) -> RuleText:
        """Read the version from the database."""
        found = rule_versions.in_force(self._store)
        if found is None:
            return self._file.read()
        return RuleText(f"version {found.version}", found.text.encode(), found.version)


def load(
    source: RuleSource, heads: Iterable[Head] = (), intents: IntentSet = NO_INTENTS
) -> RuleSet:
    """Load the rules, which may use variables of these heads and intents.

    Raises:
        RuleFileError: they cannot be read or are not valid; the message has the line.
    """
    text = source.read()
    return parse(text.raw, text.name, catalogue(heads, intents))
