"""Intents: what a turn does, defined by a few example sentences, and compared with every turn.

A match needs no second encoding: the adapter of ``IntentReader`` compares the vectors that the
scorer has computed anyway. Which turns have which intents depends on text, role, bundle and file
alone, so that a stream gives the same as a batch.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from stream_app.contracts.events import Role
from stream_app.core.measures.heads import in_words

DEFAULT_THRESHOLD: Final = 0.5
"""Scores are calibrated so that this is the threshold that the examples suggest."""


class Intent(Struct, frozen=True):
    """One intent of a file; see ``core.intent_file`` for the limits.

    ``threshold``: a turn with at least this score has the intent, 0-1.
    """

    name: str
    roles: frozenset[Role]
    examples: tuple[str, ...]
    counter_examples: tuple[str, ...] = ()
    title: str = ""
    threshold: float = DEFAULT_THRESHOLD

    @property
    def words(self) -> str:
        """The intent as people read it.

        >>> Intent("ask_contact", frozenset({Role.COUNSELLOR}), ("May I have your number?",)).words
        'ask contact'
        """
        return self.title or in_words(self.name)


class IntentSet(Struct, frozen=True):
    """The intents in force. ``digest``: 16 hex digits of the SHA-256 of all files read."""

    intents: tuple[Intent, ...] = ()
    digest: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the intents, in the order of the file."""
        return tuple(intent.name for intent in self.intents)

    @property
    def titles(self) -> dict[str, str]:
        """The words of each intent."""
        return {intent.name: intent.words for intent in self.intents}


NO_INTENTS: Final = IntentSet()

Hits = dict[str, float]
"""Scores 0-1 of the intents that a turn has, by name."""


class IntentReader(Protocol):
    """Finds the intents of encoded turns; the adapter is ``inference.intents``."""

    @property
    def intents(self) -> IntentSet:
        """The intents that it looks for."""

    def hits(self, vectors: Sequence[bytes], roles: Sequence[Role]) -> list[Hits]:
        """The hits of each turn; never dependent on the other turns in the call.

        ``vectors``: as in ``core.window.WindowTurn``.
        """


class NoIntentReader:
    """Finds nothing, because no intents are configured."""

    intents: IntentSet = NO_INTENTS

    def hits(self, vectors: Sequence[bytes], roles: Sequence[Role]) -> list[Hits]:  # noqa: ARG002
        """Nothing for each turn."""
        return [{} for _ in vectors]
