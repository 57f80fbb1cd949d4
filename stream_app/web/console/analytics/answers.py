"""The answer to a question in one sentence, from the figures of its analysis.

Says no more than the figures do: what lies beyond chance after the correction of its table, the
interval where nothing does, and why there is no answer where there is none.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Final

from stream_app.analytics.questions import (
    associations,
    drift,
    expressed_perceived,
    fairness,
    over_time,
    pairs,
    service_levels,
)
from stream_app.analytics.questions.result import ALL, Analysis, Estimate
from stream_app.web.console.formatting import counted, plain
from stream_app.web.console.plots import axis_ticks, interval_chart
from stream_app.web.console.plots.interval_chart import IntervalChart

SIGNIFICANT: Final = 0.05
MOST_LEVELS: Final = 3
"""Groups that a sentence names; the table has all."""
TIMES: Final = ("first_answer", "acknowledge_minutes")
"""Measures whose changes are ratios."""
IN_SENTENCES: Final = {
    "empathy_index": "the empathy index",
    "reflection_to_question": "the ratio of reflections to questions",
    "complex_reflection_share": "the share of complex reflections",
    "open_question_share": "the share of open questions",
    "first_answer": "the time to the first answer",
    "looked_at": "the share of sessions that somebody read",
    "acknowledge_minutes": "the time to acknowledge an alert",
    "acknowledged": "the share of acknowledged alerts",
    "precision": "the share of alerts judged right",
}
LEVELS: Final = (
    over_time.MEAN,
    pairs.MEAN,
    service_levels.TYPICAL,
    fairness.RATE,
    "mean with it",
    "mean without it",
)
"""Names of figures that state a level: nothing is tested about them."""
DRAWN: Final[Mapping[str, tuple[str, ...]]] = {
    over_time.QUESTION: (over_time.WITHIN, over_time.MIXED, over_time.POOLED),
    pairs.QUESTION: (pairs.INTERACTION,),
    expressed_perceived.QUESTION: ("difference",),
    service_levels.QUESTION: (service_levels.JUMP,),
    drift.QUESTION: (drift.INDEX,),
    fairness.QUESTION: (fairness.RATE,),
}
"""Which figures a question's plot compares; all of one unit where none is named."""


def number(value: float) -> str:
    """A figure as in a sentence, with a real minus.

    >>> number(0.0431), number(-0.00213), number(12.345), number(1204.0), number(0.0)
    ('0.043', '−0.0021', '12.3', '1,204', '0')
    """
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 100:
        said = f"{size:,.0f}"
    elif size >= 10:
        said = f"{size:.1f}"
    else:
        said = f"{size:.3f}" if size >= 0.01 else f"{size:.2g}"
    return f"−{said}" if value < 0 else said


def interval(each: Estimate) -> str:
    """The interval in words; empty without one."""
    if each.low is None or each.high is None:
        return ""
    return f"{number(each.low)} to {number(each.high)}"


def is_tested(each: Estimate) -> bool:
    """Whether the figure is a difference, change or correlation with an interval."""
    known = each.value is not None and each.low is not None and each.high is not None
    return known and each.name not in LEVELS


def is_beyond_chance(each: Estimate) -> bool:
    """Whether it stays after its table's correction; by its interval where there is no test."""
    if not is_tested(each):
        return False
    p = each.p if each.p_adjusted is None else each.p_adjusted
    if p is not None:
        return p < SIGNIFICANT
    null = 1.0 if is_ratio(each) else 0.0
    return not (each.low or 0.0) <= null <= (each.high or 0.0)


def is_ratio(each: Estimate) -> bool:
    """Whether 1, and not 0, stands for no difference."""
    changed = each.name in (service_levels.JUMP, service_levels.SLOPE) and each.measure in TIMES
    return each.unit in ("rate ratio", "odds ratio") or changed


def sentence(
    analysis: Analysis,
    shown: Sequence[Estimate],
    *,
    at: date | None = None,
    what: str = "",
    trained: str = "",
) -> str:
    """The answer from the ``shown`` estimates of one measure and group.

    ``at``: the chosen date, ``what``: what happened then, ``trained``: the team that it concerned.
    """
    if not analysis.estimates:
        return " ".join(["There is no answer yet.", *analysis.notes[-1:]])
    told: dict[str, Callable[[], str]] = {
        over_time.QUESTION: lambda: _over_time(shown),
        service_levels.QUESTION: lambda: _service_levels(shown, at, what, trained),
        drift.QUESTION: lambda: _drift(analysis, shown),
        fairness.QUESTION: lambda: _fairness(shown),
    }
    known = told.get(analysis.question)
    return known() if known else _of_many(analysis.question, shown)


def _named(shown: Sequence[Estimate], name: str) -> Estimate | None:
    some = [each for each in shown if each.name == name]
    return next((each for each in some if each.group == ALL), some[0] if some else None)


def _rests_on(each: Estimate) -> str:
    """The interval and how much it rests on, in brackets."""
    people = "" if each.counsellors is None else f", {each.counsellors} counsellors"
    n = "" if each.n is None else f", n = {each.n:,}"
    return f"(95 % interval {interval(each)}{people}{n})"


def _over_time(shown: Sequence[Estimate]) -> str:
    found = _named(shown, over_time.WITHIN)
    if found is None:
        return "There is no figure about this choice."
    what = _lower(found.measure)
    who = "" if found.group == ALL else f" who joined in {found.group}"
    if found.value is None:
        about = f"Whether {what} changes within the same counsellors{who} cannot be said"
        return f"{about}: {_why(found)}."
    if is_beyond_chance(found):
        way = "rises" if found.value > 0 else "falls"
        return (
            f"Within the same counsellors{who}, {what} {way} by {number(abs(found.value))} per "
            f"month since joining {_rests_on(found)}."
        )
    return (
        f"No change of {what} within the same counsellors{who} can be shown: the change per month "
        f"is {number(found.value)} {_rests_on(found)}."
    )


def _service_levels(shown: Sequence[Estimate], at: date | None, what: str, trained: str) -> str:
    levels = [each for each in shown if each.name == service_levels.TYPICAL]
    jump = _named(shown, service_levels.JUMP)
    if at is not None and jump is not None:
        return _jump(jump, at, what, trained)
    if not levels:
        return "There is no figure about this choice."
    known = [each for each in levels if each.value is not None]
    if not known:
        return f"{plain(levels[0].measure)} cannot be said: {_why(levels[0])}."
    said = [f"{_level(each)} {_rests_on(each)}" for each in known[:MOST_LEVELS]]
    further = len(known) - len(said)
    more = f"; {further} more in the table" if further else ""
    text = f"On average, {_lower(known[0].measure)} is {'; '.join(said)}{more}."
    if at is not None:
        return f"{text} Whether it changed at a date is not estimated."
    return f"{text} Choose a date to see whether something changed then."


def _level(each: Estimate) -> str:
    """A level with its unit, or whose it is; shares have no unit."""
    unit = f" {each.unit}" if each.unit in ("seconds", "minutes") else ""
    whose = "" if each.group == ALL else f" for {each.group}"
    return f"{number(each.value or 0.0)}{unit}{whose}"


def _jump(jump: Estimate, at: date, what: str, trained: str) -> str:
    """The change at a date; of the team ``trained`` in comparison with the others."""
    day = f"{at:%-d %B %Y}"
    happened = f"the {what} on {day}" if what else day
    named = _lower(jump.measure) + (f" of team {trained}" if trained else "")
    if jump.value is None:
        beside = ", compared with the other teams," if trained else ""
        return f"Whether {named} changed with {happened}{beside} cannot be said: {_why(jump)}."
    if is_beyond_chance(jump):
        source = "the other teams" if trained else "the trend before"
        alone = " for this team alone" if trained else ""
        return (
            f"Since {happened}, {named} is {_size(jump)} expected from {source} "
            f"{_rests_on(jump)}. Whatever else changed{alone} in that week would look the same."
        )
    beyond = "what the other teams show" if trained else "the trend before"
    return (
        f"No change of {named} with {happened} can be shown beyond {beyond}: the estimate "
        f"is {_estimate(jump)} {_rests_on(jump)}. The interval says how large a change may have "
        "been missed."
    )


def _size(jump: Estimate) -> str:
    value = jump.value or 0.0
    if is_ratio(jump):
        return f"{number(value)} times as long as"
    return f"{number(abs(value))} {'higher' if value > 0 else 'lower'} than"


def _estimate(jump: Estimate) -> str:
    value = jump.value or 0.0
    return f"{number(value)} times the expected time" if is_ratio(jump) else number(value)


def _drift(analysis: Analysis, shown: Sequence[Estimate]) -> str:
    tested = [each for each in shown if is_tested(each)]
    found = [each for each in tested if drift.is_warning(each)]
    note = " ".join(analysis.notes)
    if not tested:
        return f"Nothing could be checked. {note}"
    if not found:
        return f"No shift worth a look was found in {_checks(len(tested))}. {note}"
    largest = max(found, key=lambda each: abs(each.value or 0.0))
    others = "" if len(found) == 1 else f" in {_checks(len(tested))}; the largest"
    count = "One shift is" if len(found) == 1 else f"{len(found)} shifts are"
    return (
        f"{count} beyond chance and large enough for a look{others}: {largest.name} of "
        f"{_lower(largest.measure)}{_of_group(largest)}, {number(largest.value or 0.0)} "
        f"{_rests_on(largest)}. {note}"
    )


def _fairness(shown: Sequence[Estimate]) -> str:
    """The comparisons; how many differences are small, and how many groups have no figure."""
    found = [each for each in shown if is_beyond_chance(each)]
    small = sum(map(fairness.is_small, found))
    said = [_of_many(fairness.QUESTION, shown)]
    if small:
        which = f"{small} of these {len(found)} differences" if len(found) > 1 else "It"
        are = "is" if small == 1 else "are"
        far = "even at the far end of the interval"
        said.append(f"{which} {are} small: less than {fairness.POINTS} {far}.")
    groups = {each.group for each in shown if each.problem == fairness.NOT_ENOUGH}
    if groups:
        said.append(
            f"Some figures of {counted(len(groups), 'group')} are withheld, because the group, or "
            "the one that it is compared with, has too little data."
        )
    return " ".join(said)


def _of_many(question: str, shown: Sequence[Estimate]) -> str:
    """How many comparisons are beyond chance, and the largest of them."""
    tested = [each for each in shown if is_tested(each)]
    if not tested:
        problems = sorted({each.problem for each in shown if each.problem})
        why = f": {'; '.join(problems)}" if problems else ""
        return f"Nothing can be compared here{why}."
    found = [each for each in tested if is_beyond_chance(each)]
    corrected = (
        ""
        if question == associations.QUESTION
        else " after the correction for all comparisons of the table"
    )
    if not found:
        return (
            f"No difference beyond chance was found in {_comparisons(len(tested))}{corrected}. "
            "That does not show that there is none: the intervals say how large one may be."
        )
    largest = max(found, key=lambda each: abs(_distance(each)))
    are = "is" if len(found) == 1 else "are"
    return (
        f"{len(found)} of {_comparisons(len(tested))} {are} beyond chance{corrected}. The largest: "
        f"{_described(largest)} {_rests_on(largest)}."
    )


def _described(each: Estimate) -> str:
    """What is compared and how large it is."""
    value = each.value or 0.0
    if each.name == fairness.DIFFERENCE:
        way = "higher" if value > 0 else "lower"
        return (
            f"the share of {_lower(each.measure)} is {number(abs(value))} {way} for {each.group} "
            "than for all others"
        )
    whose = "" if each.group == ALL else f"{each.group}, "
    return f"{_lower(each.measure)}, {whose}{each.name}: {each.unit} {number(value)}"


def _distance(each: Estimate) -> float:
    return (each.value or 0.0) - (1.0 if is_ratio(each) else 0.0)


def _checks(count: int) -> str:
    return f"{count} check{'' if count == 1 else 's'}"


def _comparisons(count: int) -> str:
    return f"{count} comparison{'' if count == 1 else 's'}"


def _of_group(each: Estimate) -> str:
    return "" if each.group == ALL else f" ({each.group})"


def _why(each: Estimate) -> str:
    return (each.problem or "there is no figure").rstrip(".")


def _lower(measure: str) -> str:
    """A measure inside a sentence.

    >>> _lower("looked_at"), _lower("empathy_index"), _lower("emotional_reactions")
    ('the share of sessions that somebody read', 'the empathy index', 'emotional reactions')
    """
    name = plain(measure)
    return IN_SENTENCES.get(measure, name[:1].lower() + name[1:])


def plot(question: str, shown: Sequence[Estimate], *, one_measure: bool) -> IntervalChart | None:
    """The figures that answer the question, compared under one unit; None if none has a value."""
    known = [each for each in shown if each.value is not None]
    names = DRAWN.get(question, ())
    named = [each for each in known if each.name in names] or known
    some = [each for each in named if (each.unit, _null(each)) == (named[0].unit, _null(named[0]))]
    if not some:
        return None
    null = _null(some[0])
    scale = axis_ticks.scale_of(some[0].unit) if null is None else (None, None)
    labelled = [(label(each, one_measure=one_measure), each) for each in some]
    return interval_chart.chart(labelled, null, scale)


def label(each: Estimate, *, one_measure: bool) -> str:
    """What a line of a plot or table is about."""
    parts = [] if one_measure else [plain(each.measure)]
    if each.group != ALL:
        parts.append(each.group)
    if each.name not in (drift.INDEX, fairness.RATE) or not parts:
        parts.append(each.name)
    text = ": ".join(parts)
    return text[:1].upper() + text[1:]


def _null(each: Estimate) -> float | None:
    """The value of no difference; None for a level, of which there is none."""
    if each.name in LEVELS:
        return None
    return 1.0 if is_ratio(each) else 0.0


def chance(each: Estimate) -> str:
    """Whether a tested figure is beyond chance; empty for others.

    >>> chance(Estimate("mean", "m", "all", "u", 0.5, 0.4, 0.6, 90, 12, "b", p=0.0))
    ''
    >>> chance(Estimate("change", "m", "all", "u", 0.5, 0.4, 0.6, 90, 12, "b", p=0.2))
    'may be chance'
    """
    if not is_tested(each):
        return ""
    return "beyond chance" if is_beyond_chance(each) else "may be chance"


def p_value(each: Estimate) -> str:
    """The p-value after the correction of its table; empty where nothing was tested."""
    p = each.p if each.p_adjusted is None else each.p_adjusted
    if p is None or not is_tested(each):
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
