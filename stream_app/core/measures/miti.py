"""Behaviour counts of motivational interviewing, following the MITI.

MITI: Motivational Interviewing Treatment Integrity code, manual 4.2.1 (Moyers, Manuel & Ernst
2015). Its coders listen and code complete thoughts; here counts are expected counts, sums of
calibrated probabilities of classifiers over whole turns (`docs/miti.md` has the accuracy, and why
sentences are not scored individually).

The manual limits the codes of one *volley* (the counsellor's turns between two client turns): one
question, however many are asked (E.4.d), and one reflection per series, the complex one if any
(E.4.e.3). Here the other codes, too, are counted at most once per volley, so the turns of a volley
are merged by maxima, not summed.

    client     c0          c3    c5
    counsellor     k1 k2      k4      k6 k7
    volley         └─ 1 ┘     2       └─ 3 …
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from stream_app.contracts.events import Approach, Role
from stream_app.contracts.scores import MitiMeasure, MitiSummary, Stage, Standing, TurnScore

MILLION: Final = 1_000_000
FEWEST_VOLLEYS: Final = 10
"""Minimum number of volleys for applying thresholds: the manual codes 20 minutes of a session."""
LEAST: Final = 0.5
"""Minimum expected denominator of a ratio; below it the ratio is None."""

OPEN: Final = "open_question"
CLOSED: Final = "closed_question"
SIMPLE: Final = "simple_reflection"
COMPLEX: Final = "complex_reflection"
INFORMATION: Final = "giving_information"
SEEKING: Final = "seeking_collaboration"
PERSUADE: Final = "persuade"
PERMITTED: Final = "persuade_with_permission"
_ADVICE: Final = "advice"
"""Advice of a volley while it is unknown whether permission was given."""
NOT_COUNTED: Final = ("affirm", "emphasizing_autonomy", "confront")
"""Codes of the manual that no head predicts."""


class Threshold(Struct, frozen=True):
    """Thresholds of a measure for fair and good, and the manual that defines them."""

    fair: float
    good: float
    manual: str


THRESHOLDS: Final = {
    "reflection_to_question": Threshold(1.0, 2.0, "MITI 4.2.1"),
    "complex_reflection_share": Threshold(0.4, 0.5, "MITI 4.2.1"),
    "open_question_share": Threshold(0.5, 0.7, "MITI 3.1.1"),
}
"""MITI 4 no longer distinguishes open and closed questions; the third is from the previous manual.
"""

Codes = dict[str, int]
"""Probability of each code in a turn or volley, in millionths; codes without a head are missing."""


class Volley(Struct, frozen=True, array_like=True):
    """Consecutive counsellor turns; ``last`` is the latest seq."""

    last: int
    codes: Codes


class MitiCounts(Struct, array_like=True):
    """The counts of a session so far: sums over settled volleys, and the latest turns.

    ``sums``: by code, in millionths. ``permission``: probability that the latest settled volley
    sought collaboration. ``boundary``: a volley whose first turns are settled while more may
    follow. ``latest``: turns whose scores may still be replaced, by seq.
    """

    turns: int = 0
    volleys: int = 0
    sums: Codes = field(default_factory=dict)
    permission: int = 0
    boundary: Volley | None = None
    latest: list[tuple[int, Codes]] = field(default_factory=list)

    def observe(self, score: TurnScore, after: int) -> None:
        """Add a counsellor turn, or replace its provisional values. ``after``: the window's size.

        A late turn is a separate volley, because its neighbours may be settled. A final score of a
        turn that was not counted provisionally, before the session had its approach, is ignored.
        """
        codes = turn_codes(score)
        if codes is None:
            return
        if score.late:
            self.turns += 1
            self._count(codes, 0)
            return
        for place, (seq, _) in enumerate(self.latest):
            if seq == score.seq:
                self.latest[place] = (seq, codes)
                return
        if score.stage is Stage.FINAL:
            return
        self.latest.append((score.seq, codes))
        while len(self.latest) > after + 1:
            self._settle(*self.latest.pop(0))

    def whole(self) -> "MitiCounts":
        """The counts with all turns settled."""
        found = MitiCounts(
            self.turns, self.volleys, dict(self.sums), self.permission, self.boundary
        )
        for seq, codes in self.latest:
            found._settle(seq, codes)
        found._close()
        return found

    def _settle(self, seq: int, codes: Codes) -> None:
        self.turns += 1
        known = self.boundary
        if known is not None and seq == known.last + 1:
            self.boundary = Volley(seq, merged(known.codes, codes))
            return
        self._close()
        self.boundary = Volley(seq, codes)

    def _close(self) -> None:
        if self.boundary is not None:
            self._count(self.boundary.codes, self.permission)
            self.permission = self.boundary.codes.get(SEEKING, 0)
            self.boundary = None

    def _count(self, codes: Codes, permission: int) -> None:
        """Count a volley; ``permission``: probability that the previous volley asked for it.

        Advice counts as permitted to the degree that this volley or the previous one sought
        collaboration (E.4.c).
        """
        self.volleys += 1
        found = dict(codes)
        advice = found.pop(_ADVICE, None)
        if advice is not None:
            permission = max(permission, codes.get(SEEKING, 0))
            found[PERMITTED] = advice * permission // MILLION
            found[PERSUADE] = advice - found[PERMITTED]
        for name, value in found.items():
            self.sums[name] = self.sums.get(name, 0) + value


def counted(
    counts: MitiCounts | None, score: TurnScore, approach: str | None, after: int
) -> MitiCounts | None:
    """The counts after one more score; unchanged unless the session follows this approach."""
    if approach != Approach.MOTIVATIONAL_INTERVIEWING.value or score.role is not Role.COUNSELLOR:
        return counts
    counts = counts or MitiCounts()
    counts.observe(score, after)
    return counts


def turn_codes(score: TurnScore) -> Codes | None:
    """The codes of one turn; None if the bundle lacks heads for questions and reflections.

    The labels are AnnoMI's: information is Giving Information, advice is Persuade with or without
    permission, options and negotiation are Seeking Collaboration.
    """
    expressed = score.expressed
    question, reflection = expressed.distribution("question"), expressed.distribution("reflection")
    if question is None or reflection is None:
        return None
    found = {
        OPEN: question.get("open", 0.0),
        CLOSED: question.get("closed", 0.0),
        SIMPLE: reflection.get("simple", 0.0),
        COMPLEX: reflection.get("complex", 0.0),
    }
    if (given := expressed.distribution("input")) is not None:
        found[INFORMATION] = given.get("information", 0.0)
        found[_ADVICE] = given.get("advice", 0.0)
        found[SEEKING] = given.get("options", 0.0) + given.get("negotiation", 0.0)
    return {name: min(MILLION, round(p * MILLION)) for name, p in found.items()}


def merged(one: Mapping[str, int], other: Mapping[str, int]) -> Codes:
    """Merge two turns of a volley: for each kind, the more probable one.

    >>> merged({OPEN: 800_000, CLOSED: 100_000}, {OPEN: 0, CLOSED: 300_000})
    {'open_question': 800000, 'closed_question': 100000}

    A series of reflections counts as its complex one:

    >>> merged({SIMPLE: 900_000, COMPLEX: 0}, {SIMPLE: 100_000, COMPLEX: 700_000})
    {'simple_reflection': 200000, 'complex_reflection': 700000}
    """
    found = {
        name: max(one.get(name, 0), other.get(name, 0))
        for name in (*one, *(name for name in other if name not in one))
    }
    if OPEN in found or CLOSED in found:
        asks = max(one, other, key=lambda codes: codes.get(OPEN, 0) + codes.get(CLOSED, 0))
        found[OPEN], found[CLOSED] = asks.get(OPEN, 0), asks.get(CLOSED, 0)
    if SIMPLE in found:
        either = max(codes.get(SIMPLE, 0) + codes.get(COMPLEX, 0) for codes in (one, other))
        found[SIMPLE] = either - found.get(COMPLEX, 0)
    return found


def miti_summary(counts: MitiCounts | None) -> MitiSummary | None:
    """Counts and measures with the manual's thresholds; None before the first counted turn.

    >>> miti_summary(None) is None
    True
    """
    if counts is None:
        return None
    whole = counts.whole()
    if not whole.turns:
        return None
    found = {name: value / MILLION for name, value in whole.sums.items()}
    questions = found[OPEN] + found[CLOSED]
    reflections = found[SIMPLE] + found[COMPLEX]
    values = {
        "reflection_to_question": _ratio(reflections, questions),
        "complex_reflection_share": _ratio(found[COMPLEX], reflections),
        "open_question_share": _ratio(found[OPEN], questions),
    }
    return MitiSummary(
        turns=whole.turns,
        volleys=whole.volleys,
        counts={"question": questions, **found},
        measures={
            name: MitiMeasure(
                value=value,
                fair=THRESHOLDS[name].fair,
                good=THRESHOLDS[name].good,
                manual=THRESHOLDS[name].manual,
                standing=standing(THRESHOLDS[name], value, whole.volleys),
            )
            for name, value in values.items()
        },
        mi_adherent=found.get(SEEKING),
        mi_non_adherent=found.get(PERSUADE),
        not_counted=list(NOT_COUNTED),
    )


def standing(threshold: Threshold, value: float | None, volleys: int) -> Standing | None:
    """The threshold that a measure reaches; None if it is too early to determine.

    >>> standing(THRESHOLDS["reflection_to_question"], 1.2, 20)
    <Standing.FAIR: 'fair'>
    >>> standing(THRESHOLDS["reflection_to_question"], 1.2, 9) is None
    True
    """
    if value is None or volleys < FEWEST_VOLLEYS:
        return None
    if value >= threshold.good:
        return Standing.GOOD
    return Standing.FAIR if value >= threshold.fair else Standing.BELOW


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole >= LEAST else None
