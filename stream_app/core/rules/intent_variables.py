"""Variables of rules that follow the file of intents."""

from collections.abc import Callable, Iterable
from typing import Final

from stream_app.core.measures.heads import Head
from stream_app.core.measures.intents import NO_INTENTS, Intent, IntentSet
from stream_app.core.rules.head_variables import catalogue as head_catalogue
from stream_app.core.rules.variables import Catalogue, Kind, Reading, Variable

PREFIX: Final = "intent."


def catalogue(heads: Iterable[Head], intents: IntentSet = NO_INTENTS) -> Catalogue:
    """All variables of a bundle with these heads and of these intents.

    >>> from stream_app.contracts.events import Role
    >>> refund = Intent("refund", frozenset({Role.CLIENT}), ("I want my money back.",))
    >>> [name for name in catalogue([], IntentSet((refund,))) if name.startswith(PREFIX)]
    ['intent.refund', 'intent.refund.turns']
    """
    own = [variable for intent in intents.intents for variable in _variables(intent)]
    return {**head_catalogue(heads), **{variable.name: variable for variable in own}}


def with_intents_of(one: Catalogue, other: Catalogue) -> Catalogue:
    """The variables of ``other`` with the intents of ``one`` instead of its own."""
    return {
        **{name: found for name, found in other.items() if not name.startswith(PREFIX)},
        **{name: found for name, found in one.items() if name.startswith(PREFIX)},
    }


def _variables(intent: Intent) -> tuple[Variable, Variable]:
    name = f"{PREFIX}{intent.name}"
    return (
        Variable(
            name,
            Kind.NUMBER,
            "0-1",
            f"score of the intent “{intent.words}” in the latest turn; 0 without it",
            _latest(intent.name),
        ),
        Variable(
            f"{name}.turns",
            Kind.COUNT,
            "turns",
            f"turns with the intent “{intent.words}” so far",
            _turns(intent.name),
            digits=0,
        ),
    )


def _latest(name: str) -> Callable[[Reading], float]:
    return lambda r: r.watch.intents.get(name, 0.0)


def _turns(name: str) -> Callable[[Reading], int]:
    return lambda r: r.watch.intent_turns.get(name, 0)
