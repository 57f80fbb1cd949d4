"""Running aggregates of a session over its counsellor turns.

Everything is kept as integers, so that replacing a provisional level by a final one leaves exactly
what a run with only final levels would have left.
"""

from msgspec import Struct, field

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, MechanismSummary, TurnScore

RECENT = 5


class Contribution(Struct, frozen=True):
    """What one counsellor turn adds; levels in the order of ``MECHANISMS``."""

    seq: int
    levels: tuple[int, int, int]
    question: str | None
    reflection: str | None


class Totals(Struct):
    """Sums over counsellor turns that can no longer change."""

    turns: int = 0
    levels: list[int] = field(default_factory=lambda: [0, 0, 0])
    present: list[int] = field(default_factory=lambda: [0, 0, 0])
    open_questions: int = 0
    closed_questions: int = 0
    simple_reflections: int = 0
    complex_reflections: int = 0

    def add(self, item: Contribution) -> None:
        """Count one turn."""
        self.turns += 1
        for i, level in enumerate(item.levels):
            self.levels[i] += level
            self.present[i] += level > 0
        self.open_questions += item.question == "open"
        self.closed_questions += item.question == "closed"
        self.simple_reflections += item.reflection == "simple"
        self.complex_reflections += item.reflection == "complex"


class Aggregates(Struct):
    """``settled`` plus the latest turns, whose scores may still be replaced."""

    settled: Totals = field(default_factory=Totals)
    latest: list[Contribution] = field(default_factory=list)
    turns: int = 0
    late_turns: int = 0
    client_words: int = 0
    counsellor_words: int = 0

    def count_turn(self, role: Role, words: int, late: bool) -> None:
        """Count a turn of either side when it is accepted."""
        self.turns += 1
        self.late_turns += late
        if role is Role.CLIENT:
            self.client_words += words
        else:
            self.counsellor_words += words

    def observe(self, item: Contribution, after: int, late: bool = False) -> None:
        """Add a counsellor turn, or replace its provisional values. ``after``: window's size.

        A late turn is final at once and never recent; among the latest it could push out a turn
        whose final values are still to come.
        """
        if late:
            self.settled.add(item)
            return
        for i, known in enumerate(self.latest):
            if known.seq == item.seq:
                self.latest[i] = item
                return
        self.latest.append(item)
        while len(self.latest) > max(RECENT, after + 1):
            self.settled.add(self.latest.pop(0))

    def summary(self) -> "Summary":
        """Means, shares and ratios as of now."""
        totals = Totals(
            turns=self.settled.turns,
            levels=list(self.settled.levels),
            present=list(self.settled.present),
            open_questions=self.settled.open_questions,
            closed_questions=self.settled.closed_questions,
            simple_reflections=self.settled.simple_reflections,
            complex_reflections=self.settled.complex_reflections,
        )
        for item in self.latest:
            totals.add(item)
        recent = self.latest[-RECENT:]
        questions = totals.open_questions + totals.closed_questions
        reflections = totals.simple_reflections + totals.complex_reflections
        words = self.client_words + self.counsellor_words
        return Summary(
            counsellor_turns=totals.turns,
            mechanisms={
                name: MechanismSummary(
                    mean=totals.levels[i] / totals.turns,
                    recent_mean=sum(item.levels[i] for item in recent) / max(1, len(recent)),
                    share=totals.present[i] / totals.turns,
                )
                for i, name in enumerate(MECHANISMS)
            }
            if totals.turns
            else {},
            empathy_total_mean=sum(totals.levels) / totals.turns if totals.turns else None,
            talk_share=_ratio(self.counsellor_words, words),
            reflection_to_question=_ratio(reflections, questions),
            complex_reflection_share=_ratio(totals.complex_reflections, reflections),
            open_question_share=_ratio(totals.open_questions, questions),
            questions_per_turn=_ratio(questions, totals.turns),
            reflections_per_turn=_ratio(reflections, totals.turns),
            words_per_turn=_ratio(self.counsellor_words, totals.turns),
        )


class Summary(Struct, frozen=True):
    """Aggregates as numbers; a ratio without a denominator is None."""

    counsellor_turns: int
    mechanisms: dict[str, MechanismSummary]
    empathy_total_mean: float | None
    talk_share: float | None
    reflection_to_question: float | None
    complex_reflection_share: float | None
    open_question_share: float | None
    questions_per_turn: float | None
    reflections_per_turn: float | None
    words_per_turn: float | None


def contribution(score: TurnScore) -> Contribution:
    """What a scored counsellor turn adds to its session."""
    levels = tuple(
        level.level if (level := getattr(score.expressed, name)) is not None else 0
        for name in MECHANISMS
    )
    return Contribution(
        seq=score.seq,
        levels=(levels[0], levels[1], levels[2]),
        question=_top(score.expressed.question),
        reflection=_top(score.expressed.reflection),
    )


def _top(distribution: dict[str, float] | None) -> str | None:
    return max(distribution, key=distribution.__getitem__) if distribution else None


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
