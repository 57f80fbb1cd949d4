"""One turn as the console shows it: marked text, levels, chips, perceived bars, the window."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, Stage
from stream_app.core.perceived import PerceivedGroup, Validity
from stream_app.store.reading.transcripts import ScoreOfTurn, TurnRead
from stream_app.web.console.words import BADGES, LEVELS, plain

CHIP_HEADS: Final = (
    "strategy",
    "behaviour",
    "question",
    "reflection",
    "input",
    "empathic_intent",
    "service_intents",
)
NOTHING: Final = ("none", "no")
"""Labels of a head that found none of its kind; they get no chip."""
NOT_SHOWN: Final = ("satisfaction",)
"""Client heads that are inputs of outcome risks only: one sentence says nothing of satisfaction."""
COLLAPSE_ABOVE: Final = 1500
"""Characters of a text that are shown without being asked for."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of text under the same marks; ``begins`` are those that start with it."""

    text: str
    marks: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LevelShown:
    """A mechanism's level; ``level`` and ``confidence`` are None where the model abstained."""

    head: str
    badge: str
    level: int | None
    word: str
    confidence: float | None
    marked: bool


@dataclass(frozen=True, slots=True)
class Chip:
    """The most probable label of a head."""

    head: str
    label: str
    probability: float


@dataclass(frozen=True, slots=True)
class Bar:
    """How a listener may perceive it; ``probability`` is None where the model abstained.

    ``validity``: how the value agrees with ratings, the one to show first; empty if not measured.
    """

    name: str
    probability: float | None
    validity: tuple[Validity, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnShown:
    """A turn with what one bundle says about it; ``abstained``: heads without a chip for that."""

    turn: TurnRead
    score: ScoreOfTurn | None
    segments: list[Segment]
    levels: list[LevelShown]
    chips: list[Chip]
    abstained: list[str]
    perceived: list[Bar]
    before: list[int]
    after: list[int]

    @property
    def is_counsellor(self) -> bool:
        """Whether the scores of expressed empathy apply."""
        return self.turn.role is Role.COUNSELLOR

    @property
    def long(self) -> bool:
        """Whether the text is shown in part first."""
        return len(self.turn.text or "") > COLLAPSE_ABOVE


def shown(
    turn: TurnRead,
    bundle: str,
    window: tuple[int, int],
    neighbours: Sequence[int],
    groups: Sequence[PerceivedGroup] = (),
) -> TurnShown:
    """The turn under a bundle.

    Args:
        turn: as it is stored.
        bundle: whose score to show.
        window: how many turns before and after the model may see.
        neighbours: the seqs around the turn, in order.
        groups: the bundle's perceived heads that are shown as one value.
    """
    score = turn.score(bundle)
    expressed: Mapping[str, Any] = score.expressed if score else {}
    spans = {
        name: expressed[name].get("rationale", [])
        for name in MECHANISMS
        if score and expressed.get(name) and name not in score.abstained
    }
    before = [seq for seq in neighbours if seq < turn.seq]
    after = [seq for seq in neighbours if seq > turn.seq]
    final = score is not None and score.stage is Stage.FINAL
    return TurnShown(
        turn,
        score,
        segments(turn.text, spans) if turn.text is not None else [],
        _levels(score) if score else [],
        _chips(score, turn.role) if score else [],
        _silent(score, turn.role) if score else [],
        _bars(score, groups) if score else [],
        before[-window[0] :] if window[0] and score else [],
        after[: window[1]] if final else [],
    )


def segments(text: str, spans: Mapping[str, Sequence[Sequence[int]]]) -> list[Segment]:
    """Cut a text where marks begin or end, so that marks of several mechanisms may overlap.

    Spans are [start, end) in characters; what lies outside the text is left out.
    """
    held = {
        name: [(max(0, start), min(len(text), end)) for start, end in found]
        for name, found in spans.items()
    }
    held = {name: [span for span in found if span[0] < span[1]] for name, found in held.items()}
    cuts = sorted({0, len(text), *(place for found in held.values() for s in found for place in s)})
    pieces = []
    for start, end in pairwise(cuts):
        pieces.append(
            Segment(
                text[start:end],
                tuple(n for n in held if any(s <= start and end <= e for s, e in held[n])),
                tuple(n for n in held if any(s == start for s, _ in held[n])),
                tuple(n for n in held if any(e == end for _, e in held[n])),
            )
        )
    return pieces


def _levels(score: ScoreOfTurn) -> list[LevelShown]:
    found = []
    for name in MECHANISMS:
        given = score.expressed.get(name)
        if given is None:
            continue
        if name in score.abstained:
            found.append(LevelShown(name, BADGES[name], None, "abstained", None, marked=False))
            continue
        level = given["level"]
        found.append(
            LevelShown(
                name,
                BADGES[name],
                level,
                LEVELS[level],
                max(given["probabilities"]),
                bool(given.get("rationale")),
            )
        )
    return found


def _chips(score: ScoreOfTurn, role: Role) -> list[Chip]:
    found = []
    for name, labels in _heads(score, role).items():
        label = max(labels, key=lambda key: labels[key])
        if name not in score.abstained and label not in NOTHING:
            found.append(Chip(name, label, labels[label]))
    return found


def _silent(score: ScoreOfTurn, role: Role) -> list[str]:
    return [name for name in _heads(score, role) if name in score.abstained]


def _heads(score: ScoreOfTurn, role: Role) -> Mapping[str, Mapping[str, float]]:
    if role is Role.CLIENT:
        return {name: labels for name, labels in score.client.items() if name not in NOT_SHOWN}
    return {name: score.expressed[name] for name in CHIP_HEADS if score.expressed.get(name)}


def _bars(score: ScoreOfTurn, groups: Sequence[PerceivedGroup]) -> list[Bar]:
    """One for each group, then one for each head that is in none."""
    grouped = {name for group in groups for name in group.members}
    shown = [(g.name, g.shown, tuple(g.validity)) for g in groups if g.shown in score.perceived]
    shown += [(plain(name), name, ()) for name in score.perceived if name not in grouped]
    return [
        Bar(name, None if head in score.abstained else score.perceived[head], validity)
        for name, head, validity in shown
    ]
