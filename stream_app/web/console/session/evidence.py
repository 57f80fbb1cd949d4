"""View of one turn: text with rationale marks, levels, label chips, perceived bars, window."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from stream_app.contracts.events import Role
from stream_app.contracts.scores import TOTAL, Stage
from stream_app.core.measures.crisis import CRISIS, LISTED, find_phrases
from stream_app.core.measures.heads import (
    LEVELS,
    SATISFACTION,
    Dimension,
    Head,
    HeadKind,
    in_words,
    title_of,
)
from stream_app.core.measures.perceived import PerceivedGroup, Validity
from stream_app.store.sessions.bundle_info import BundleInfo
from stream_app.store.sessions.transcripts import ScoreOfTurn, TurnRead

NEGATIVE_LABELS: Final = ("none", "no")
"""Labels that say that something is absent; they get no chip."""
NO_TITLES: Final[Mapping[str, str]] = MappingProxyType({})
COLLAPSE_ABOVE: Final = 1500
"""Longer texts (in characters) are collapsed at first."""
LEAST_VALIDITY: Final = 0.3
"""Least correlation with held-out ratings at which a perceived value is shown to people."""


@dataclass(frozen=True, slots=True)
class TextSegment:
    """Text with the same marks throughout; ``begins``, ``ends``: marks that start or end here."""

    text: str
    marks: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LevelView:
    """A head's level; ``level`` and ``confidence`` are None if the model abstained."""

    head: str
    title: str
    badge: str
    level: int | None
    word: str
    confidence: float | None
    marked: bool


@dataclass(frozen=True, slots=True)
class Chip:
    """The most probable label of a head, or an intent; without a probability, a phrase."""

    head: str
    label: str
    probability: float | None


@dataclass(frozen=True, slots=True)
class Bar:
    """A perceived head or group; ``probability`` is None if the model abstained.

    ``validity``: correlations with ratings, the one to show first.
    """

    name: str
    probability: float | None
    validity: tuple[Validity, ...]


@dataclass(frozen=True, slots=True)
class TurnView:
    """A turn with its scores from one bundle.

    ``abstained``: titles of heads that abstained and so have no chip. ``badges``: letters of the
    heads whose rationales are marked. ``before``, ``after``: seqs of the context window.
    """

    turn: TurnRead
    score: ScoreOfTurn | None
    segments: list[TextSegment]
    badges: dict[str, str]
    levels: list[LevelView]
    chips: list[Chip]
    abstained: list[str]
    perceived: list[Bar]
    before: list[int]
    after: list[int]

    @property
    def is_counsellor(self) -> bool:
        """Whether the turn has scores of expressed empathy."""
        return self.turn.role is Role.COUNSELLOR

    @property
    def disputable(self) -> list[LevelView]:
        """The levels that a counsellor may dispute; abstentions are not scores."""
        return [level for level in self.levels if level.level is not None]

    @property
    def listed(self) -> list[Chip]:
        """What a list found in the words; the other chips are weighed by the model."""
        return [chip for chip in self.chips if chip.probability is None]

    @property
    def weighed(self) -> list[Chip]:
        """The chips with a probability."""
        return [chip for chip in self.chips if chip.probability is not None]

    @property
    def explained(self) -> bool:
        """Whether there is anything to say about how the turn was scored."""
        scored = self.is_counsellor and self.score is not None
        return scored or bool(self.weighed or self.abstained)

    @property
    def long(self) -> bool:
        """Whether the text is collapsed at first."""
        return len(self.turn.text or "") > COLLAPSE_ABOVE


def turn_view(
    turn: TurnRead,
    bundle: str,
    neighbours: Sequence[int],
    info: BundleInfo,
    titles: Mapping[str, str] = NO_TITLES,
) -> TurnView:
    """Build the view of a turn.

    Args:
        turn: the stored turn.
        bundle: the bundle whose scores are shown.
        neighbours: seqs of the surrounding turns, in order.
        info: the bundle's window, heads and groups of perceived heads.
        titles: words of the known intents by name.
    """
    score = turn.score(bundle)
    heads = heads_of(score, info.heads) if score else []
    spans = {
        head.name: score.expressed[head.name].get("rationale", [])
        for head in heads
        if score and has_level(head) and head.name not in score.abstained
    }
    before = [seq for seq in neighbours if seq < turn.seq]
    after = [seq for seq in neighbours if seq > turn.seq]
    final = score is not None and score.stage is Stage.FINAL
    return TurnView(
        turn,
        score,
        segments(turn.text, spans) if turn.text is not None else [],
        {head.name: head.badge for head in heads if head.name in spans},
        _levels(score, heads) if score else [],
        [*_chips(score, heads, turn.text), *_intent_chips(score, titles)] if score else [],
        [head.title for head in heads if score and _has_abstained_chip(score, head)],
        _bars(score, info.perceived) if score else [],
        before[-info.before :] if info.before and score else [],
        after[: info.after] if final else [],
    )


def heads_of(score: ScoreOfTurn, known: Sequence[Head]) -> list[Head]:
    """The heads in the turn's score, in the manifest's order.

    Heads that the manifest lacks (such as the distress probe) come last; their kind is inferred
    from the score.
    """
    given = [name for name in (*score.expressed, *score.perceived, *score.client) if name != TOTAL]
    heads = [head for head in known if head.name in given]
    named = {head.name for head in heads}
    return heads + [_infer_head(score, name) for name in given if name not in named]


def _infer_head(score: ScoreOfTurn, name: str) -> Head:
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


def segments(text: str, spans: Mapping[str, Sequence[Sequence[int]]]) -> list[TextSegment]:
    """Split a text where marks begin or end, so that marks of several heads may overlap.

    Text spans are [start, end) in characters; parts outside the text are ignored.
    """
    clipped = {
        name: [(max(0, start), min(len(text), end)) for start, end in found]
        for name, found in spans.items()
    }
    clipped = {
        name: [span for span in found if span[0] < span[1]] for name, found in clipped.items()
    }
    cuts = sorted(
        {0, len(text), *(place for found in clipped.values() for s in found for place in s)}
    )
    pieces = []
    for start, end in pairwise(cuts):
        pieces.append(
            TextSegment(
                text[start:end],
                tuple(n for n in clipped if any(s <= start and end <= e for s, e in clipped[n])),
                tuple(n for n in clipped if any(s == start for s, _ in clipped[n])),
                tuple(n for n in clipped if any(e == end for _, e in clipped[n])),
            )
        )
    return pieces


def has_level(head: Head) -> bool:
    """Whether the head gives levels of expressed empathy."""
    return head.dimension is Dimension.EXPRESSED and head.kind is HeadKind.LEVEL


def _has_chip(head: Head) -> bool:
    """Whether the head's label is shown. Satisfaction, a client head in old manifests, is not."""
    of_turn = head.dimension in (Dimension.EXPRESSED, Dimension.CLIENT)
    return of_turn and not has_level(head) and head.name != SATISFACTION


def _levels(score: ScoreOfTurn, heads: Sequence[Head]) -> list[LevelView]:
    found = []
    for head in filter(has_level, heads):
        given = score.expressed[head.name]
        if head.name in score.abstained:
            found.append(
                LevelView(head.name, head.title, head.badge, None, "abstained", None, marked=False)
            )
            continue
        level = given["level"]
        found.append(
            LevelView(
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


def _chips(score: ScoreOfTurn, heads: Sequence[Head], text: str | None) -> list[Chip]:
    found = []
    for head in filter(_has_chip, heads):
        if head.name == CRISIS:
            found += _crisis_chip(score.client[CRISIS]["yes"], text)
            continue
        labels = score.expressed.get(head.name) or score.client[head.name]
        label = max(labels, key=lambda key: labels[key])
        if head.name not in score.abstained and label not in NEGATIVE_LABELS:
            found.append(Chip(head.title, head.label(label), labels[label]))
    return found


def _intent_chips(score: ScoreOfTurn, titles: Mapping[str, str]) -> list[Chip]:
    """The intents of the turn, the highest score first."""
    ordered = sorted(score.intents.items(), key=lambda item: (-item[1], item[0]))
    return [Chip("intent", titles.get(name) or in_words(name), value) for name, value in ordered]


def _crisis_chip(value: float, text: str | None) -> list[Chip]:
    """Crisis language with the phrases that the list finds; what the probe alone says has no chip.

    There may be no words: the text is deleted, redacted, or was read with another list.
    """
    if value < LISTED:
        return []
    words = "; ".join(f"“{(text or '')[start:end]}”" for start, end in find_phrases(text or ""))
    return [Chip(title_of(CRISIS), words or "yes", None)]


def _has_abstained_chip(score: ScoreOfTurn, head: Head) -> bool:
    return _has_chip(head) and head.name in score.abstained


def _bars(score: ScoreOfTurn, groups: Sequence[PerceivedGroup]) -> list[Bar]:
    """One bar per group that agrees with every rating it was compared with.

    A head without a group was never compared, so nothing is known of what its value means.
    """
    return [
        Bar(
            group.name,
            None if group.shown in score.abstained else score.perceived[group.shown],
            tuple(group.validity),
        )
        for group in groups
        if group.shown in score.perceived and _is_valid(group)
    ]


def _is_valid(group: PerceivedGroup) -> bool:
    return min((each.r for each in group.validity), default=0.0) >= LEAST_VALIDITY
