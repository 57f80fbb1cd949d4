"""How far two scorers of one bundle agree on the same turns, each with its neighbours."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from benchmarks.load.workload import Turn
from stream_app.contracts.events import Role
from stream_app.contracts.scores import Level, Stage
from stream_app.core.measures.window import Neighbour, ScoringRequest, WindowTurn
from stream_app.core.session.ports import HeadScores
from stream_app.inference.scorer import OnnxScorer

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BATCH = 256


class Agreement(Struct, frozen=True):
    """``largest`` and ``mean`` difference of a probability; ``labels``: share of equal labels.

    ``by_head``: the largest difference of each head.
    """

    turns: int
    largest: float
    mean: float
    labels: float
    by_head: dict[str, float]


def requests(scorer: OnnxScorer, turns: Sequence[Turn]) -> list[ScoringRequest]:
    """Final requests for turns of any sessions, encoded in batches of a worker's size."""
    before, after = scorer.window
    sessions: dict[int, list[WindowTurn]] = {}
    for start in range(0, len(turns), BATCH):
        part = turns[start : start + BATCH]
        roles = [Role(turn.role) for turn in part]
        encoded = scorer.encode([turn.text for turn in part], roles)
        for turn, role, item in zip(part, roles, encoded, strict=True):
            own = sessions.setdefault(turn.session, [])
            own.append(
                WindowTurn(
                    turn.seq,
                    role,
                    NOW,
                    turn.seq,
                    len(turn.text.split()),
                    item.vectors,
                    item.rationales,
                    tokens=item.tokens,
                )
            )
    return [
        ScoringRequest(
            turn,
            Stage.FINAL,
            [
                Neighbour(other, place - at)
                for place, other in enumerate(own)
                if place != at and -before <= place - at <= after
            ],
        )
        for own in sessions.values()
        for at, turn in enumerate(own)
    ]


def scores(scorer: OnnxScorer, turns: Sequence[Turn]) -> list[HeadScores]:
    """The scores of all turns, by session."""
    wanted = requests(scorer, turns)
    return [
        found
        for start in range(0, len(wanted), BATCH)
        for found in scorer.score(wanted[start : start + BATCH])
    ]


def compared(one: Sequence[HeadScores], other: Sequence[HeadScores]) -> Agreement:
    """Compare the scores of the same turns."""
    differences: list[float] = []
    by_head: dict[str, float] = {}
    equal = labels = 0
    for first, second in zip(one, other, strict=True):
        mine, theirs = dict(_heads(first)), dict(_heads(second))
        for head, (label, shares) in mine.items():
            known, others = theirs[head]
            found = [abs(a - b) for a, b in zip(shares, others, strict=True)]
            differences += found
            by_head[head] = max(by_head.get(head, 0.0), *found)
            equal += label == known
            labels += 1
    return Agreement(
        turns=len(one),
        largest=max(differences),
        mean=sum(differences) / len(differences),
        labels=equal / labels,
        by_head={head: round(by_head[head], 4) for head in sorted(by_head)},
    )


def _heads(found: HeadScores) -> Iterator[tuple[str, tuple[int, list[float]]]]:
    """Label and probabilities by head."""
    for name, value in found.expressed.items():
        if isinstance(value, Level):
            yield name, (value.level, value.probabilities)
        elif isinstance(value, dict):
            yield name, _likeliest(list(value.values()))
    for name, share in found.perceived.items():
        yield name, _likeliest([1 - share, share])
    for name, values in found.client.items():
        yield name, _likeliest(list(values.values()))


def _likeliest(shares: list[float]) -> tuple[int, list[float]]:
    return max(range(len(shares)), key=shares.__getitem__), shares
