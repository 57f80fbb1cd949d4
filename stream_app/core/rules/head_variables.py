"""Variables of rules that follow a bundle's manifest: what its heads say, label by label."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from stream_app.contracts.events import Role
from stream_app.core.measures.aggregates import MILLION, RECENT
from stream_app.core.measures.heads import Dimension, Head
from stream_app.core.rules.variables import CATALOGUE, Catalogue, Kind, Reading, Variable

_DIMENSIONS: Final = {
    Dimension.EXPRESSED: "expressed",
    Dimension.PERCEIVED: "perceived",
    Dimension.CLIENT: "client",
    Dimension.OUTCOME: "client",
}
_ABSENT: Final = {
    Role.COUNSELLOR: "unless the latest turn is the counsellor's, or without the head",
    Role.CLIENT: "before the first client turn, or without the head",
}
_NO_TURN: Final = "before the first turn of that side, or without the head"


def catalogue(heads: Iterable[Head]) -> Catalogue:
    """All variables of a bundle with these heads: its own after those that every bundle has.

    >>> from stream_app.core.measures.heads import HeadKind
    >>> warmth = Head("warmth", Dimension.EXPRESSED, HeadKind.LEVEL, [Role.COUNSELLOR],
    ...               ["none", "weak", "strong"], evidence=["strong"])
    >>> [name for name in catalogue([warmth]) if name not in CATALOGUE]
    ['expressed.warmth.strong', 'expressed.warmth.strong.mean', 'expressed.warmth.strong.recent']
    """
    own = [variable for head in heads for variable in _variables(head)]
    return {**CATALOGUE, **{variable.name: variable for variable in own}}


def _variables(head: Head) -> Iterator[Variable]:
    """Three for each label that is evidence: the latest turn, all turns, the last ones."""
    for label in head.evidence:
        key = f"{head.name}.{label}"
        name = f"{_DIMENSIONS[head.dimension]}.{key}"
        says = f"probability of “{head.label(label)}” ({head.title}) in the latest turn"
        side = Role.CLIENT if head.roles == [Role.CLIENT] else Role.COUNSELLOR
        yield Variable(name, Kind.NUMBER, "0-1", says, _latest(key, side), _ABSENT[side])
        for part, words in (("mean", "all turns"), ("recent", f"the last {RECENT} turns")):
            says = f"mean of {name} over {words} of that side"
            yield Variable(
                f"{name}.{part}", Kind.NUMBER, "0-1", says, _of_session(key, part), _NO_TURN
            )


def _latest(key: str, side: Role) -> Callable[[Reading], float | None]:
    def read(r: Reading) -> float | None:
        turn = r.client
        if side is Role.COUNSELLOR:
            turn = r.counsellor if r.watch.last_role is Role.COUNSELLOR else None
        found = turn.evidence.get(key) if turn is not None else None
        return None if found is None else found / MILLION

    return read


def _of_session(key: str, part: str) -> Callable[[Reading], float | None]:
    def read(r: Reading) -> float | None:
        found = r.summary.evidence.get(key)
        return float(getattr(found, part)) if found is not None else None

    return read
