"""The catalogue of measures: one entry for each measure of a session or of a turn.

Columns of tables, views and exports, measures of roll-ups, analyses and scorecards, variables of
rules, the session page's list and the documents' tables derive from it. A new measure is an entry
here, its computation, a field of ``contracts.scores`` and of ``SessionCard``, and a migration;
``tests/test_new_measure.py`` adds one.
"""

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final

from msgspec import Struct

from stream_app.contracts.scores import MECHANISMS, TOTAL
from stream_app.core.measures.heads import PERCEIVED, title_of


class Unit(Struct, frozen=True):
    """The unit of a measure and the range of its values; ``high`` None: there is no bound."""

    words: str
    low: int = 0
    high: int | None = None

    @property
    def scale(self) -> str:
        """The range, or the words of a unit without one.

        >>> SHARE.scale, WORDS.scale
        ('0-1', 'words')
        """
        return self.words if self.high is None else f"{self.low}-{self.high}"

    @property
    def label(self) -> str:
        """The unit of a chart's axis.

        >>> SHARE.label, RATIO.label
        ('share (0-1)', 'ratio')
        """
        return self.words if self.high is None else f"{self.words} ({self.scale})"

    def told(self, about: str) -> str:
        """A meaning as columns have it: behind the range, if there is one.

        >>> SHARE.told("of questions"), RATIO.told("reflections per question")
        ('0-1, of questions', 'Reflections per question')
        """
        return about[:1].upper() + about[1:] if self.high is None else f"{self.scale}, {about}"


SHARE: Final = Unit("share", high=1)
PROBABILITY: Final = Unit("probability", high=1)
INDEX: Final = Unit("index", high=1)
RISK: Final = Unit("risk", high=1)
PERCENTILE: Final = Unit("percentile", high=100)
LEVEL: Final = Unit("level", high=2)
LEVELS: Final = Unit("sum of levels", high=6)
RATIO: Final = Unit("ratio")
WORDS: Final = Unit("words")
TURNS: Final = Unit("turns")


class Use(Enum):
    """A place that shows or computes measures."""

    TABLE = "score table, reporting views"
    EXPORTS = "exports"
    RULES = "variables of rules"
    ROLL_UPS = "roll-ups, charts, goals"
    SCORECARDS = "criteria of scorecards"
    FRAMES = "frames of analyses"
    OVER_TIME = "analysis over time"
    PAIRS = "analysis of pairs"
    SERVICE_LEVELS = "analysis of service levels"
    PAGE = "list of the session page"
    SUMMARY = "summary, report and first curves"


class Measure(Struct, frozen=True, kw_only=True):
    """One measure of a session."""

    name: str
    """Its field of the score, and its column."""
    title: str
    """Its name on pages and in reasons of alerts."""
    unit: Unit
    about: str
    """Its meaning, as a phrase that follows the range."""
    uses: frozenset[Use]
    absent: str = "never"
    """When a session has no value."""
    digits: int = 2
    """Decimals in messages."""
    mean_of: str = ""
    """The score of turns that it averages: its name in roll-ups, scorecards and analyses."""
    part: str = ""
    """Its part of a mechanism's summary."""
    of_exchanges: bool = False
    """Whether it rests on the exchanges of the counsellor who speaks."""
    beside: str = ""
    """Words after the value on the session page."""
    old_rule: str = ""
    """Its name in rules of earlier releases."""
    usual: str = ""
    """Its name in the table of baselines, if it has a baseline."""
    example: float = 0.0
    """Its value in the examples of the API's document."""

    @property
    def short(self) -> str:
        """Its name in roll-ups, scorecards and analyses."""
        return self.mean_of or self.name

    @property
    def mechanism(self) -> str:
        """The mechanism of which it is a part."""
        return self.name.removesuffix(f"_{self.part}")

    @property
    def meaning(self) -> str:
        """Its meaning in tables of columns."""
        return self.unit.told(self.about)

    @property
    def variables(self) -> tuple[str, ...]:
        """Its names in rules, the old one too."""
        return (self.name, self.old_rule) if self.old_rule else (self.name,)


_SHOWN: Final = frozenset({Use.TABLE, Use.EXPORTS, Use.RULES})
_ROLLED_UP: Final = _SHOWN | {Use.ROLL_UPS, Use.SCORECARDS}
_ANALYSED: Final = frozenset({Use.FRAMES, Use.OVER_TIME})
_COMPARED: Final = _ANALYSED | {Use.PAIRS, Use.SERVICE_LEVELS}
NO_EXCHANGE: Final = "before the first answered exchange, or without an index in the bundle"
_NO_DENOMINATOR: Final = "while the denominator is zero"
_NO_TURN: Final = "before the first counsellor turn"


def _of_mechanism(mechanism: str) -> Iterator[Measure]:
    title = title_of(mechanism)
    yield Measure(
        name=f"{mechanism}_mean",
        title=title,
        unit=LEVEL,
        about="mean expected level over counsellor turns",
        absent=_NO_TURN,
        uses=_ROLLED_UP | _COMPARED | {Use.SUMMARY},
        mean_of=mechanism,
        part="mean",
        old_rule=f"{mechanism}.mean",
    )
    yield Measure(
        name=f"{mechanism}_recent_mean",
        title=f"{title}, last five turns",
        unit=LEVEL,
        about="mean expected level over the last five counsellor turns",
        absent=_NO_TURN,
        uses=_SHOWN,
        part="recent_mean",
        old_rule=f"{mechanism}.recent",
    )
    yield Measure(
        name=f"{mechanism}_share",
        title=f"{title}, share of turns",
        unit=SHARE,
        about="expected share of counsellor turns with a level above 0",
        absent=_NO_TURN,
        uses=_SHOWN,
        part="share",
        old_rule=f"{mechanism}.share",
    )


def _of_sessions() -> Iterator[Measure]:
    yield Measure(
        name="low_empathy_risk",
        title="Low-empathy risk",
        unit=RISK,
        about="probability that the recent index is low",
        absent="before the bundle's minimum of answered exchanges, or without an index in the "
        "bundle",
        uses=_ROLLED_UP | {Use.FRAMES},
        of_exchanges=True,
        old_rule="risk",
        usual="risk",
        example=0.61,
    )
    yield Measure(
        name="empathy_index",
        title="Empathy index",
        unit=INDEX,
        about="empathy of the counsellor's answers, weighted by opportunity",
        absent=NO_EXCHANGE,
        uses=_ROLLED_UP | _COMPARED | {Use.SUMMARY},
        of_exchanges=True,
        old_rule="index",
        usual="index",
        example=0.14,
    )
    for name, end in (("empathy_low", "lower"), ("empathy_high", "upper")):
        yield Measure(
            name=name,
            title=f"Empathy index, {end} end",
            unit=INDEX,
            about=f"{end} end of the 95 % interval of the index",
            absent=NO_EXCHANGE,
            uses=frozenset({Use.TABLE}),
        )
    yield Measure(
        name="empathy_percentile",
        title="Percentile of the empathy index",
        unit=PERCENTILE,
        about="share of the reference with a lower index",
        absent=NO_EXCHANGE,
        uses=_SHOWN,
        of_exchanges=True,
        old_rule="index_percentile",
        example=8.0,
    )
    yield Measure(
        name="answered_share",
        title="Opportunities answered",
        unit=SHARE,
        about="share of the empathic opportunities that were answered",
        absent="before an opportunity",
        uses=_ROLLED_UP | {Use.PAGE},
        of_exchanges=True,
        usual="answered",
        example=0.25,
    )
    yield Measure(
        name="empathy_total_mean",
        title="Empathy, sum of the levels",
        unit=LEVELS,
        about="mean sum of the expected levels over counsellor turns",
        absent=_NO_TURN,
        uses=_ROLLED_UP,
        mean_of=TOTAL,
        old_rule="empathy.mean",
        usual="empathy",
        example=2.6,
    )
    for mechanism in MECHANISMS:
        yield from _of_mechanism(mechanism)
    yield Measure(
        name="talk_share",
        title="Counsellor's share of the words",
        unit=SHARE,
        about="the counsellor's share of the words",
        absent=_NO_DENOMINATOR,
        uses=_ROLLED_UP | {Use.PAGE},
        example=0.44,
    )
    yield Measure(
        name="reflection_to_question",
        title="Reflections to questions",
        unit=RATIO,
        about="reflections per question",
        absent=_NO_DENOMINATOR,
        uses=_ROLLED_UP | _ANALYSED | {Use.PAGE},
        beside="per question",
        example=0.5,
    )
    yield Measure(
        name="complex_reflection_share",
        title="Complex reflections",
        unit=SHARE,
        about="share of complex among the reflections",
        absent=_NO_DENOMINATOR,
        uses=_ROLLED_UP | _ANALYSED,
        example=0.25,
    )
    yield Measure(
        name="open_question_share",
        title="Open questions",
        unit=SHARE,
        about="share of open questions among the questions",
        absent=_NO_DENOMINATOR,
        uses=_ROLLED_UP | _ANALYSED | {Use.PAGE},
        beside="of questions",
        example=0.67,
    )
    for name, title, unit, about in (
        ("questions_per_turn", "Questions per turn", SHARE, "questions per counsellor turn"),
        ("reflections_per_turn", "Reflections per turn", SHARE, "reflections per counsellor turn"),
        ("words_per_turn", "Words per turn", WORDS, "length of a counsellor turn"),
    ):
        uses = frozenset({Use.RULES})
        yield Measure(
            name=name, title=title, unit=unit, about=about, absent=_NO_DENOMINATOR, uses=uses
        )
    for name in PERCEIVED:
        yield Measure(
            name=name,
            title=title_of(name),
            unit=PROBABILITY,
            about=f"mean probability that a listener would report {name}",
            uses=frozenset({Use.ROLL_UPS}),
        )


MEASURES: Final = tuple(_of_sessions())
"""The measures of a session, in the order of all tables and lists."""
_NOW: Final = {each.mean_of: each.name for each in MEASURES if each.mean_of}


def used(*places: Use) -> Iterator[Measure]:
    """The measures that are used in all these places."""
    return (each for each in MEASURES if each.uses.issuperset(places))


def columns() -> Iterator[Measure]:
    """The measures that have a column of their own in the table of session scores."""
    return (each for each in used(Use.TABLE) if not each.part)


def names(*places: Use) -> tuple[str, ...]:
    """Names of the measures that are used in all these places."""
    return tuple(each.name for each in used(*places))


def now(name: str) -> str:
    """The name of a measure, which earlier releases may have named otherwise.

    >>> now("explorations"), now("explorations_mean")
    ('explorations_mean', 'explorations_mean')
    """
    return _NOW.get(name, name)


def short_names(*places: Use) -> tuple[str, ...]:
    """Names as in roll-ups, of the measures that are used in all these places."""
    return tuple(each.short for each in used(*places))


def units(*places: Use) -> dict[str, str]:
    """Units of charts by the names in roll-ups."""
    return {each.short: each.unit.label for each in used(*places)}


def table(place: Use) -> str:
    """The measures of a place as a Markdown table of the documents."""
    rows = [f"| `{each.name}` | {each.meaning} |" for each in used(place)]
    return "\n".join(["| measure | range and meaning |", "| --- | --- |", *rows])


def titles(measures: Iterable[Measure] = MEASURES) -> dict[str, str]:
    """Titles by name, and by the name in roll-ups."""
    found = list(measures)
    return {each.name: each.title for each in found} | {each.short: each.title for each in found}
