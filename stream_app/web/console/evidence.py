"""One turn as the console shows it: marked text, levels, chips, perceived bars, the window."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from stream_app.contracts.events import Role
from stream_app.contracts.scores import TOTAL, Stage
from stream_app.core.heads import LEVELS, SATISFACTION, Dimension, Head, HeadKind
from stream_app.core.perceived import PerceivedGroup, Validity
from stream_app.store.reading.bundle_facts import BundleFacts
from stream_app.store.reading.transcripts import ScoreOfTurn, TurnRead

NOTHING: Final = ("none", "no")
"""Labels of a head that found none of its kind; they get no chip."""
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
    """A head's level; ``level`` and ``confidence`` are None where the model abstained."""

    head: str
    title: str
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
    """A turn with what one bundle says about it; ``abstained``: heads without a chip for that.

    ``badges``: letters of the heads whose words are marked.
    """

    turn: TurnRead
    score: ScoreOfTurn | None
    segments: list[Segment]
    badges: dict[str, str]
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
    neighbours: Sequence[int],
    facts: BundleFacts,
) -> TurnShown:
    """The turn under a bundle.

    Args:
        turn: as it is stored.
        bundle: whose score to show.
        neighbours: the seqs around the turn, in order.
        facts: its window, its heads, and which perceived heads are shown as one value.
    """
    score = turn.score(bundle)
    heads = heads_of(score, facts.heads) if score else []
    spans = {
        head.name: score.expressed[head.name].get("rationale", [])
        for head in heads
        if score and has_level(head) and head.name not in score.abstained
    }
    before = [seq for seq in neighbours if seq < turn.seq]
    after = [seq for seq in neighbours if seq > turn.seq]
    final = score is not None and score.stage is Stage.FINAL
    return TurnShown(
        turn,
        score,
        segments(turn.text, spans) if turn.text is not None else [],
        {head.name: head.badge for head in heads if head.name in spans},
        _levels(score, heads) if score else [],
        _chips(score, heads) if score else [],
        [head.title for head in heads if score and _is_silent(score, head)],
        _bars(score, heads, facts.perceived) if score else [],
        before[-facts.before :] if facts.before and score else [],
        after[: facts.after] if final else [],
    )


def heads_of(score: ScoreOfTurn, known: Sequence[Head]) -> list[Head]:
    """The heads that say something of the turn, in the manifest's order.

    What the score has and the manifest lacks (a probe) comes last, as far as its shape tells.
    """
    given = [name for name in (*score.expressed, *score.perceived, *score.client) if name != TOTAL]
    heads = [head for head in known if head.name in given]
    named = {head.name for head in heads}
    return heads + [_unknown(score, name) for name in given if name not in named]


def _unknown(score: ScoreOfTurn, name: str) -> Head:
    if name in score.perceived:
        yes = [Role.COUNSELLOR]
        return Head(name, Dimension.PERCEIVED, HeadKind.BINARY, yes, ["no", "yes"])
    if name in score.client:
        labels = list(score.client[name])
        return Head(name, Dimension.CLIENT, HeadKind.CATEGORICAL, [Role.CLIENT], labels)
    part = score.expressed[name]
    kind = HeadKind.LEVEL if "level" in part else HeadKind.CATEGORICAL
    labels = list(LEVELS if kind is HeadKind.LEVEL else part)
    return Head(name, Dimension.EXPRESSED, kind, [Role.COUNSELLOR], labels)


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


def has_level(head: Head) -> bool:
    """Tests for a head of levels of what the counsellor expressed."""
    return head.dimension is Dimension.EXPRESSED and head.kind is HeadKind.LEVEL


def _has_chip(head: Head) -> bool:
    """Tests for a head whose label is told; earlier manifests have satisfaction for a client's."""
    of_turn = head.dimension in (Dimension.EXPRESSED, Dimension.CLIENT)
    return of_turn and not has_level(head) and head.name != SATISFACTION


def _levels(score: ScoreOfTurn, heads: Sequence[Head]) -> list[LevelShown]:
    found = []
    for head in filter(has_level, heads):
        given = score.expressed[head.name]
        if head.name in score.abstained:
            found.append(
                LevelShown(head.name, head.title, head.badge, None, "abstained", None, marked=False)
            )
            continue
        level = given["level"]
        found.append(
            LevelShown(
                head.name,
                head.title,
                head.badge,
                level,
                head.label(head.labels[level]),
                max(given["probabilities"]),
                bool(given.get("rationale")),
            )
        )
    return found


def _chips(score: ScoreOfTurn, heads: Sequence[Head]) -> list[Chip]:
    found = []
    for head in filter(_has_chip, heads):
        labels = score.expressed.get(head.name) or score.client[head.name]
        label = max(labels, key=lambda key: labels[key])
        if head.name not in score.abstained and label not in NOTHING:
            found.append(Chip(head.title, head.label(label), labels[label]))
    return found


def _is_silent(score: ScoreOfTurn, head: Head) -> bool:
    return _has_chip(head) and head.name in score.abstained


def _bars(score: ScoreOfTurn, heads: Sequence[Head], groups: Sequence[PerceivedGroup]) -> list[Bar]:
    """One for each group, then one for each head that is in none."""
    grouped = {name for group in groups for name in group.members}
    shown = [(g.name, g.shown, tuple(g.validity)) for g in groups if g.shown in score.perceived]
    shown += [
        (head.title, head.name, ())
        for head in heads
        if head.dimension is Dimension.PERCEIVED and head.name not in grouped
    ]
    return [
        Bar(name, None if head in score.abstained else score.perceived[head], validity)
        for name, head, validity in shown
    ]
