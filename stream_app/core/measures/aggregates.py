"""Running aggregates of a session: counsellor conduct, client talk, and speaking shares.

All values are integers, so that replacing a provisional score by a final one gives exactly the
result of a run with final scores only; probabilities and log-odds are in millionths.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Final

from msgspec import Struct, field, structs

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, MechanismSummary, SessionMeasures, TurnScore
from stream_app.core.measures.heads import (
    CONDUCT,
    PERCEIVED,
    SATISFACTION,
    STRATEGY,
    TALK,
    Dimension,
    Kept,
)
from stream_app.core.measures.turn_evidence import Evidence, Parts, parts, places


@cache
def _key(head: str, label: str) -> str:
    """The name in the evidence: one string for all open sessions."""
    return sys.intern(f"{head}.{label}")


Levels = tuple[int | None, int | None, int | None]
"""Levels of the mechanisms, None where the head is missing or abstained."""

RECENT = 5
RECENT_WORDS = 3
SHORT_TURN = 4
"""A turn of at most this many words is short."""
MILLION: Final = 1_000_000
LARGEST_LOG_ODDS: Final = 8.0
UNASKED_ADVICE: Final = _key("input", "advice_unasked")
"""Probability of advice times that of no question in the counsellor's turn before."""
_EXPECTED: Final = [(name, _key("expected", name)) for name in MECHANISMS]
_EXPECTED_KEYS: Final = tuple(key for _, key in _EXPECTED)
_QUESTIONS: Final = (_key("question", "open"), _key("question", "closed"))
_ADVICE: Final = (_key("input", "advice"),)
_CONDUCT: Final = [
    (head, [(label, _key(head, label)) for label in labels]) for head, labels in CONDUCT.items()
]
"""Names in the evidence, by head and label."""


class Contribution(Struct, frozen=True, array_like=True):
    """The contribution of one turn; mechanisms in the order of ``MECHANISMS``.

    ``levels``: reported levels, None where the head is missing or abstained. ``expected``: expected
    level 0-2, and ``shown``: probability of a level above 0, both in millionths. ``evidence``: by
    name, log-odds of the binary heads and probabilities of the others' labels, in millionths.
    """

    seq: int
    levels: Levels
    expected: tuple[int, int, int]
    shown: tuple[int, int, int]
    question: str | None
    reflection: str | None
    evidence: Mapping[str, int] = {}


class Totals(Struct, array_like=True):
    """Sums over turns of one side whose scores are final.

    ``asked``: probability that the latest of these turns asked a question, in millionths.
    """

    turns: int = 0
    expected: list[int] = field(default_factory=lambda: [0, 0, 0])
    shown: list[int] = field(default_factory=lambda: [0, 0, 0])
    open_questions: int = 0
    closed_questions: int = 0
    simple_reflections: int = 0
    complex_reflections: int = 0
    evidence: dict[str, int] = field(default_factory=dict)
    asked: int = 0

    def add(self, item: Contribution, late: bool = False) -> None:
        """Count one turn with its evidence; the turn before a late one is unknown."""
        self.count(item)
        evidence = self.evidence
        own = parts(item.evidence)
        names, numbers = own if late else _after(self.asked, own)
        for name, value in zip(names, numbers, strict=True):
            evidence[name] = evidence.get(name, 0) + value
        if not late:
            self.asked = _asked(own)

    def count(self, item: Contribution) -> None:
        """Count one turn without its evidence."""
        self.turns += 1
        for i in range(len(MECHANISMS)):
            self.expected[i] += item.expected[i]
            self.shown[i] += item.shown[i]
        self.open_questions += item.question == "open"
        self.closed_questions += item.question == "closed"
        self.simple_reflections += item.reflection == "simple"
        self.complex_reflections += item.reflection == "complex"


class Speech(Struct, array_like=True):
    """Lengths of one side's turns in words; ``logs``: sum of log(1 + words) in millionths.

    ``repeats``: turns that directly follow another one of the same side.
    """

    turns: int = 0
    words: int = 0
    short: int = 0
    logs: int = 0
    longest: int = 0
    repeats: int = 0
    recent: list[int] = field(default_factory=list)

    def add(self, words: int, *, late: bool, repeats: bool) -> None:
        """Count one turn; a late one is not recent."""
        self.turns += 1
        self.words += words
        self.short += words <= SHORT_TURN
        self.logs += round(math.log1p(words) * MILLION)
        self.longest = max(self.longest, words)
        self.repeats += repeats
        if not late:
            self.recent.append(words)
            del self.recent[:-RECENT_WORDS]


class Aggregates(Struct, array_like=True):
    """``settled`` sums plus the latest turns of either side, whose scores may still be replaced."""

    settled: Totals = field(default_factory=Totals)
    latest: list[Contribution] = field(default_factory=list)
    client_settled: Totals = field(default_factory=Totals)
    client_latest: list[Contribution] = field(default_factory=list)
    turns: int = 0
    late_turns: int = 0
    client: Speech = field(default_factory=Speech)
    counsellor: Speech = field(default_factory=Speech)
    last_role: Role | None = None

    def count_turn(self, role: Role, words: int, late: bool) -> None:
        """Count a turn of either side when it is accepted."""
        self.turns += 1
        self.late_turns += late
        speech = self.client if role is Role.CLIENT else self.counsellor
        speech.add(words, late=late, repeats=not late and role is self.last_role)
        if not late:
            self.last_role = role

    def observe(
        self,
        item: Contribution,
        after: int,
        late: bool = False,
        role: Role = Role.COUNSELLOR,
    ) -> None:
        """Add a scored turn, or replace its provisional values. ``after``: the window's size.

        A late turn is final at once and never recent; among the latest it could displace a turn
        whose final score is still due.
        """
        client = role is Role.CLIENT
        settled = self.client_settled if client else self.settled
        latest = self.client_latest if client else self.latest
        if late:
            settled.add(item, late=True)
            return
        for i, known in enumerate(latest):
            if known.seq == item.seq:
                latest[i] = item
                return
        latest.append(item)
        while len(latest) > max(RECENT, after + 1):
            settled.add(latest.pop(0))

    def measures(self) -> SessionMeasures:
        """Means, shares and ratios to report for the session so far."""
        return self._measures(self._totals())

    def _measures(self, totals: Totals) -> SessionMeasures:
        recent = self.latest[-RECENT:]
        questions = totals.open_questions + totals.closed_questions
        reflections = totals.simple_reflections + totals.complex_reflections
        words = self.client.words + self.counsellor.words
        return SessionMeasures(
            counsellor_turns=totals.turns,
            mechanisms={
                name: MechanismSummary(
                    mean=totals.expected[i] / totals.turns / MILLION,
                    recent_mean=sum([item.expected[i] for item in recent])
                    / max(1, len(recent))
                    / MILLION,
                    share=totals.shown[i] / totals.turns / MILLION,
                )
                for i, name in enumerate(MECHANISMS)
            }
            if totals.turns
            else {},
            empathy_total_mean=sum(totals.expected) / totals.turns / MILLION
            if totals.turns
            else None,
            talk_share=_ratio(self.counsellor.words, words),
            reflection_to_question=_ratio(reflections, questions),
            complex_reflection_share=_ratio(totals.complex_reflections, reflections),
            open_question_share=_ratio(totals.open_questions, questions),
        )

    def _totals(self) -> Totals:
        """The settled sums and the latest turns, without evidence."""
        settled = self.settled
        totals = structs.replace(
            settled, expected=[*settled.expected], shown=[*settled.shown], evidence={}
        )
        for item in self.latest:
            totals.count(item)
        return totals

    def summary(self) -> "Summary":
        """The measures and the other inputs of the risk."""
        totals = self._totals()
        questions = totals.open_questions + totals.closed_questions
        reflections = totals.simple_reflections + totals.complex_reflections
        return Summary(
            **structs.asdict(self._measures(totals)),
            questions_per_turn=_ratio(questions, totals.turns),
            reflections_per_turn=_ratio(reflections, totals.turns),
            words_per_turn=_ratio(self.counsellor.words, totals.turns),
            client=_speech_summary(self.client),
            counsellor=_speech_summary(self.counsellor),
            evidence=_evidence(self.settled, self.latest)
            | _evidence(self.client_settled, self.client_latest),
        )


class SpeechSummary(Struct, frozen=True):
    """Speech of one side; lengths are log(1 + words), 0 before its first turn."""

    turns: int
    log_mean: float
    mean_log: float
    short_share: float
    log_longest: float
    log_recent: float
    repeat_share: float


class EvidenceSummary(Struct, frozen=True):
    """Means of one head's output over all turns of its side and over the last five."""

    mean: float
    recent: float


class Summary(SessionMeasures, frozen=True, kw_only=True):
    """All inputs of the risk."""

    questions_per_turn: float | None
    reflections_per_turn: float | None
    words_per_turn: float | None
    client: SpeechSummary
    counsellor: SpeechSummary
    evidence: dict[str, EvidenceSummary]


def contribution(score: TurnScore, kept: Sequence[Kept] = ()) -> Contribution:
    """The contribution of a scored turn; ``kept``: of heads that are not read by name."""
    expressed = score.expressed
    names, numbers = parts(evidence(score, kept))
    levels: list[int | None] = []
    shown = []
    for name in MECHANISMS:
        found = expressed.level(name)
        levels.append(found.level if found and name not in score.abstained else None)
        shown.append(round(sum(found.probabilities[1:]) * MILLION) if found else 0)
    return Contribution(
        seq=score.seq,
        levels=shared_levels((levels[0], levels[1], levels[2])),
        expected=expected_levels(names, numbers),
        shown=(shown[0], shown[1], shown[2]),
        question=_top(expressed.distribution("question")),
        reflection=_top(expressed.distribution("reflection")),
        evidence=Evidence(names, numbers),
    )


@lru_cache(64)
def shared_levels(levels: Levels) -> Levels:
    """One tuple for all open sessions."""
    return levels


def expected_levels(names: tuple[str, ...], numbers: Sequence[int]) -> tuple[int, int, int]:
    """The expected levels in a turn's evidence, or their sums; 0 where the head is missing."""
    first, second, third = _values(names, numbers, _EXPECTED_KEYS)
    return first, second, third


def _values(names: tuple[str, ...], numbers: Sequence[int], wanted: tuple[str, ...]) -> list[int]:
    """The numbers with these names; 0 for those that are missing."""
    found = places(names, wanted)
    return [0 if place is None else numbers[place] for place in found]


def evidence(score: TurnScore, kept: Sequence[Kept] = ()) -> dict[str, int]:
    """The head outputs that the session keeps, in millionths.

    Log-odds for what is pooled by its mean (`models.fit.perceived`): perceived empathy and the
    client's satisfaction; probabilities for strategies and the client's talk. Mechanisms by their
    expected level, which moves before the most likely level does. Of every other head the
    probabilities of the labels that its manifest names as evidence, as ``head.label``.
    """
    found: dict[str, int] = {
        name: _log_odds(score.perceived[name]) for name in PERCEIVED if name in score.perceived
    }
    expressed = score.expressed
    for name, key in _EXPECTED:
        level = expressed.level(name)
        if level is not None:
            _, weak, strong = level.probabilities
            found[key] = round((weak + 2 * strong) * MILLION)
    for label, p in (expressed.distribution(STRATEGY) or {}).items():
        found[_key(STRATEGY, label)] = round(p * MILLION)
    for head, labels in _CONDUCT:
        if given := expressed.distribution(head):
            for label, key in labels:
                found[key] = round(given.get(label, 0.0) * MILLION)
    if SATISFACTION in score.client:
        found[SATISFACTION] = _log_odds(score.client[SATISFACTION].get("yes", 0.5))
    for label, p in score.client.get(TALK, {}).items():
        found[_key(TALK, label)] = round(p * MILLION)
    if kept:
        found.update(_stated(score, kept))
    return found


def _stated(score: TurnScore, kept: Sequence[Kept]) -> dict[str, int]:
    return {
        _key(item.head, label): round(p * MILLION)
        for item in kept
        for label, p in _said(score, item).items()
    }


def _said(score: TurnScore, kept: Kept) -> dict[str, float]:
    """The labels' probabilities; empty where the head does not score the turn."""
    match kept.dimension:
        case Dimension.PERCEIVED:
            p = score.perceived.get(kept.head)
            return {} if p is None else {name: p for _, name in kept.labels}
        case Dimension.EXPRESSED:
            level = score.expressed.level(kept.head)
            if level is not None:
                return {name: level.probabilities[place] for place, name in kept.labels}
            found = score.expressed.distribution(kept.head)
        case Dimension.CLIENT | Dimension.OUTCOME:
            found = score.client.get(kept.head)
    return {name: found.get(name, 0.0) for _, name in kept.labels} if found else {}


def _log_odds(p: float) -> int:
    """Log-odds in millionths, clipped to ±8.

    >>> _log_odds(0.5), _log_odds(1.0)
    (0, 8000000)
    """
    if p <= 0.0 or p >= 1.0:
        return round(math.copysign(LARGEST_LOG_ODDS, p - 0.5) * MILLION)
    odds = math.log(p / (1.0 - p))
    return round(max(-LARGEST_LOG_ODDS, min(LARGEST_LOG_ODDS, odds)) * MILLION)


def _asked(evidence: Parts) -> int:
    """Probability of a question of either kind, in millionths."""
    return min(MILLION, sum(_values(*evidence, _QUESTIONS)))


def _after(asked: int, evidence: Parts) -> Parts:
    """Add evidence that depends on the probability that the previous turn asked a question.

    >>> _after(250_000, (("input.advice",), (400_000,)))
    (('input.advice', 'input.advice_unasked'), (400000, 300000))
    """
    names, numbers = evidence
    [place] = places(names, _ADVICE)
    if place is None:
        return evidence
    unasked = numbers[place] * (MILLION - asked) // MILLION
    return (*names, UNASKED_ADVICE), (*numbers, unasked)


def _evidence(settled: Totals, latest: list[Contribution]) -> dict[str, EvidenceSummary]:
    own = [parts(item.evidence) for item in latest]
    asked = [settled.asked, *map(_asked, own)]
    kept = [_after(before, each) for before, each in zip(asked, own, strict=False)]
    lately, times = _summed(kept[-RECENT:])
    before, _ = _summed(kept[:-RECENT])
    turns = settled.turns + len(latest)
    found = {}
    for name in settled.evidence | before | lately:
        value = settled.evidence.get(name, 0) + before.get(name, 0) + lately.get(name, 0)
        mean = value / turns / MILLION
        last = lately[name] / times[name] / MILLION if name in times else mean
        found[name] = EvidenceSummary(mean, last)
    return found


def _summed(items: list[Parts]) -> tuple[dict[str, int], dict[str, int]]:
    """Sum the turns' evidence by name, and count the turns that have it."""
    names = items[0][0] if items else ()
    if all(item[0] == names for item in items):  # nearly always: the bundle's heads
        columns = zip(*[numbers for _, numbers in items], strict=True)
        return dict(zip(names, map(sum, columns), strict=True)), dict.fromkeys(names, len(items))
    sums: dict[str, int] = {}
    times: dict[str, int] = {}
    for item in items:
        for name, value in zip(*item, strict=True):
            sums[name] = sums.get(name, 0) + value
            times[name] = times.get(name, 0) + 1
    return sums, times


def _speech_summary(speech: Speech) -> SpeechSummary:
    turns = max(1, speech.turns)
    return SpeechSummary(
        turns=speech.turns,
        log_mean=math.log1p(speech.words / turns),
        mean_log=speech.logs / turns / MILLION,
        short_share=speech.short / turns,
        log_longest=math.log1p(speech.longest),
        log_recent=math.log1p(sum(speech.recent) / max(1, len(speech.recent))),
        repeat_share=speech.repeats / turns,
    )


def _top(distribution: dict[str, float] | None) -> str | None:
    return max(distribution, key=distribution.__getitem__) if distribution else None


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
