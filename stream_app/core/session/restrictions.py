"""Outputs that are not computed for some sessions, because the law or an agreement forbids them.

A session whose team, channel or domain is not known yet has the restrictions of all of them.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct, field, structs

from stream_app.core.measures.heads import Dimension
from stream_app.core.session.ports import HeadScores

EVERYWHERE: Final = "all"
CHOICES: Final[Mapping[str, frozenset[Dimension]]] = {
    "client": frozenset({Dimension.CLIENT, Dimension.OUTCOME}),
    "perceived": frozenset({Dimension.PERCEIVED}),
}
"""A kind of output that can be restricted; heads of outcomes are stored with the client's."""
Outputs = frozenset[Dimension]
NOTHING: Final[Outputs] = frozenset()


class Restrictions(Struct, frozen=True):
    """Restricted outputs of all sessions, and by team, domain and channel."""

    everywhere: Outputs = NOTHING
    by_team: dict[str, Outputs] = field(default_factory=dict)
    by_domain: dict[str, Outputs] = field(default_factory=dict)
    by_channel: dict[str, Outputs] = field(default_factory=dict)

    def and_everywhere(self, outputs: Outputs) -> "Restrictions":
        """These, and outputs that are restricted in all sessions."""
        return structs.replace(self, everywhere=self.everywhere | outputs)

    def of(self, domain: str | None, channel: str | None, team: str | None) -> Outputs:
        """Return the outputs that are restricted in a session.

        >>> given = parse_restrictions('{"team:berlin": ["client"], "all": ["perceived"]}')
        >>> [len(given.of(None, None, team)) for team in ("berlin", "boston", None)]
        [3, 1, 3]
        """
        found = self.everywhere
        for value, restricted in (
            (domain, self.by_domain),
            (channel, self.by_channel),
            (team, self.by_team),
        ):
            if value is not None:
                found |= restricted.get(value, NOTHING)
            else:
                found = found.union(*restricted.values())
        return found


NO_RESTRICTIONS: Final = Restrictions()
_VARIABLES: Final = {
    Dimension.CLIENT: (
        *("client.", "outcome.", "waiting_distress"),
        *("crisis_language", "client_turns_since_crisis", "intent."),
    ),
    Dimension.PERCEIVED: ("perceived.", "outcome."),
}
"""How the names of rule variables begin that are computed from an output."""


def variables_of(restricted: Outputs) -> tuple[str, ...]:
    """How the names of the rule variables begin that such sessions lack.

    >>> variables_of(frozenset({Dimension.PERCEIVED}))
    ('perceived.', 'outcome.')
    """
    return tuple(prefix for each in restricted for prefix in _VARIABLES.get(each, ()))


def parse_restrictions(text: str) -> Restrictions:
    """Parse a JSON object from ``all``, ``team:``, ``domain:`` or ``channel:NAME`` to outputs.

    Raises:
        ValueError: not such an object, or an unknown key or output.

    >>> parse_restrictions('{"all": ["mood"]}')
    Traceback (most recent call last):
    ValueError: values are lists of client, perceived
    """
    if not text.strip():
        return NO_RESTRICTIONS
    try:
        given = msgspec.json.decode(text, type=dict[str, list[str]])
    except msgspec.DecodeError:
        message = "not a JSON object from keys to lists of outputs"
        raise ValueError(message) from None
    everywhere = NOTHING
    parts: dict[str, dict[str, Outputs]] = {"team": {}, "domain": {}, "channel": {}}
    for key, names in given.items():
        if any(name not in CHOICES for name in names):
            message = f"values are lists of {', '.join(CHOICES)}"
            raise ValueError(message)
        outputs = NOTHING.union(*(CHOICES[name] for name in names))
        kind, _, value = key.partition(":")
        if key == EVERYWHERE:
            everywhere = outputs
        elif kind in parts and value:
            parts[kind][value] = outputs
        else:
            message = "keys are all, team:NAME, domain:NAME and channel:NAME"
            raise ValueError(message)
    return Restrictions(everywhere, parts["team"], parts["domain"], parts["channel"])


def without_restricted(heads: HeadScores, restricted: Outputs) -> HeadScores:
    """The scores without restricted outputs, also in the list of abstained heads."""
    if not restricted:
        return heads
    dropped: set[str] = set()
    if Dimension.PERCEIVED in restricted:
        dropped |= heads.perceived.keys()
        heads = structs.replace(heads, perceived={})
    if Dimension.CLIENT in restricted:
        dropped |= heads.client.keys()
        heads = structs.replace(heads, client={})
    return structs.replace(
        heads, abstained=[name for name in heads.abstained if name not in dropped]
    )
