"""Outputs that are not computed for some sessions, because the law or an agreement forbids them.

A session whose team, channel or domain is not known yet has the restrictions of all of them.
"""

from collections.abc import Mapping, Sequence
from typing import Final

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

        >>> given = parse_restrictions({"team:berlin": ["client"], "all": ["perceived"]})
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


def parse_restrictions(given: Mapping[str, Sequence[str]]) -> Restrictions:
    """Sort outputs, as ``CHOICES`` calls them, by their keys.

    Raises:
        ValueError: a key is neither ``all`` nor ``team:``, ``domain:`` or ``channel:NAME``.

    >>> parse_restrictions({"berlin": ["client"]})
    Traceback (most recent call last):
    ValueError: unknown key `berlin`; keys are all, team:NAME, domain:NAME and channel:NAME
    """
    everywhere = NOTHING
    parts: dict[str, dict[str, Outputs]] = {"team": {}, "domain": {}, "channel": {}}
    for key, names in given.items():
        outputs = NOTHING.union(*(CHOICES[name] for name in names))
        kind, _, value = key.partition(":")
        if key == EVERYWHERE:
            everywhere = outputs
        elif kind in parts and value:
            parts[kind][value] = outputs
        else:
            known = "all, team:NAME, domain:NAME and channel:NAME"
            raise ValueError(f"unknown key `{key}`; keys are {known}")
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
