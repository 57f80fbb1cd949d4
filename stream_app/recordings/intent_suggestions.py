"""Groups similar turns that no intent catches, as suggestions of new ones."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

import msgspec
import numpy as np
from msgspec import Struct
from rich.console import Console

from stream_app.contracts.events import SCORED_ROLES, Role, Turn, decode
from stream_app.core.rules.intent_file import MAX_EXAMPLES, MIN_EXAMPLES
from stream_app.core.session.ports import Scorer
from stream_app.errors import ContractError
from stream_app.inference.intent_model import Floats, units
from stream_app.inference.intents import IntentComparer

MAX_TURNS: Final = 5000
"""Turns of one role that are clustered: the distances of all pairs are computed."""
MIN_WORDS: Final = 3
AT_ONCE: Final = 256


class Uncaught(Struct, frozen=True):
    """A turn that no intent catches. ``unit``: its vector, [hidden], relative to the centre."""

    text: str
    session_id: str
    unit: Floats


class Suggestion(Struct, frozen=True):
    """A group of similar turns.

    ``examples``: those nearest to its middle, as the examples of an intent. ``closeness``: mean
    cosine of its turns with the middle.
    """

    role: Role
    turns: int
    sessions: int
    closeness: float
    examples: list[str]


def uncaught(
    events: Iterable[bytes], comparer: IntentComparer, scorer: Scorer
) -> tuple[dict[Role, list[Uncaught]], int]:
    """The turns without an intent by role, each text once, and the number of turns that were read.

    Short turns are left out, and all turns of a role after ``MAX_TURNS``.
    """
    found: dict[Role, list[Uncaught]] = {role: [] for role in SCORED_ROLES}
    seen: set[tuple[Role, str]] = set()
    read = 0
    turns = (turn for turn in map(_turn, events) if turn is not None)
    while some := list(islice(turns, AT_ONCE)):
        read += len(some)
        roles = [turn.speaker_role for turn in some]
        vectors = [e.vectors for e in scorer.encode([turn.text for turn in some], roles)]
        rows = units(vectors) - comparer.fitted.centre
        for turn, row, hits in zip(some, rows, comparer.hits(vectors, roles), strict=True):
            key = turn.speaker_role, turn.text.casefold()
            kept = found[turn.speaker_role]
            short = len(turn.text.split()) < MIN_WORDS
            if not hits and not short and key not in seen and len(kept) < MAX_TURNS:
                seen.add(key)
                length = max(float(np.linalg.norm(row)), np.finfo(np.float32).tiny)
                kept.append(Uncaught(turn.text, turn.session_id, row / length))
    return found, read


def suggest(
    role: Role, turns: Sequence[Uncaught], least: int, closeness: float
) -> list[Suggestion]:
    """Cluster by average linkage of cosine distances; the largest groups first.

    Args:
        role: whose turns they are.
        turns: as ``uncaught`` finds them.
        least: turns that a group must have, and distinct sessions at least two.
        closeness: mean cosine between the turns of two groups that are joined, 0-1.
    """
    if len(turns) < max(2, least):
        return []
    from scipy.cluster.hierarchy import fcluster, linkage  # noqa: PLC0415  # an extra
    from scipy.spatial.distance import pdist  # noqa: PLC0415

    rows = np.stack([turn.unit for turn in turns])
    tree = linkage(pdist(rows, "cosine"), "average")
    groups = fcluster(tree, 1.0 - closeness, "distance")
    found = []
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        sessions = {turns[place].session_id for place in members.tolist()}
        if len(members) < max(least, MIN_EXAMPLES) or len(sessions) < 2:
            continue
        middle = rows[members].mean(axis=0)
        cosines = rows[members] @ middle / max(float(np.linalg.norm(middle)), 1e-9)
        nearest = members[np.argsort(-cosines, kind="stable")[:MAX_EXAMPLES]]
        texts = [" ".join(turns[place].text.split()) for place in nearest.tolist()]
        found.append(Suggestion(role, len(members), len(sessions), float(cosines.mean()), texts))
    return sorted(found, key=lambda each: -each.turns)


def report(suggestions: Sequence[Suggestion], console: Console) -> None:
    """Print the suggestions as items of a file of intents, to be named and edited."""
    for number, each in enumerate(suggestions, 1):
        lines = [
            f"  # {each.turns} turns of {each.sessions} sessions, closeness {each.closeness:.2f}",
            f"  - name: suggestion_{number}",
            f"    role: {each.role.value}",
            "    examples:",
            *(f"      - {_quoted(text)}" for text in each.examples),
        ]
        console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def _quoted(text: str) -> str:
    """A text as YAML's double-quoted scalar, which JSON's strings are."""
    return msgspec.json.encode(text).decode()


def _turn(raw: bytes) -> Turn | None:
    try:
        event = decode(raw) if raw else None
    except ContractError:
        return None
    return event if isinstance(event, Turn) and not event.is_aside else None
