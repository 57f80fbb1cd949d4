"""The views of turns by day: sums instead of single turns, so that dashboards stay fast."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from stream_app.analytics.views.columns import Column, Kind, View
from stream_app.analytics.views.dialects import Dialect
from stream_app.analytics.views.hidden_cells import FEWEST_CLIENTS
from stream_app.analytics.views.rollup_source import SCALE
from stream_app.contracts.scores import MECHANISMS
from stream_app.core.measures.heads import LEVELS, PERCEIVED
from stream_app.store.database.tables import WORDS_FROM

_TEXT, _INTEGER, _NUMBER, _DATE = Kind.TEXT, Kind.INTEGER, Kind.NUMBER, Kind.DATE
_KEYS: Final = (
    Column("date", _DATE, "d.day", "UTC, of the session's first turn"),
    Column("bundle", _TEXT, "d.bundle", "Joins `dim_bundle`; compare within one bundle"),
    Column("team", _TEXT, "nullif(d.team, '')", "As the events carry it; joins `dim_team`"),
    Column("domain", _TEXT, "nullif(d.domain, '')", "counselling, peer-support, customer-service"),
    Column("channel", _TEXT, "nullif(d.channel, '')", "As the events carry it"),
    Column("lang", _TEXT, "nullif(d.lang, '')", "BCP 47 tag"),
    Column("role", _TEXT, "d.role", "client or counsellor"),
)
_GRAIN: Final = "day, bundle, team, domain, channel, language and role"


def all_turn_days(dialect: Dialect) -> list[View]:
    """The views over ``rollup_turn_days``."""
    return [_turn_day(), _words(), _shown(dialect)]


def _turn_day() -> View:
    return View(
        "fact_turn_day",
        f"a {_GRAIN}: sums over the final scores of ended sessions",
        (
            *_KEYS,
            Column("sessions", _INTEGER, "d.sessions", "Ended sessions with such turns"),
            Column("turns", _INTEGER, "d.turns", "Turns with a final score"),
            Column("late_turns", _INTEGER, "d.late", "Of them out of order, too late"),
            Column("truncated_turns", _INTEGER, "d.truncated", "Longer than the encoder reads"),
            _total("confidence_sum", "d.confidence", "Sum of the confidence, 0-1 each"),
            Column("words_turns", _INTEGER, "d.words_n", "Turns whose number of words is known"),
            Column("words_sum", _INTEGER, "d.words", "Sum of their words"),
            *_heads(),
        ),
        "FROM rollup_turn_days AS d",
    )


def _heads() -> Iterator[Column]:
    for name in MECHANISMS:
        about = "Sum of the expected level, 0-2 each"
        yield from _head(name, name, about)
        for level in range(len(LEVELS)):
            column = f"{name}_level_{level}"
            yield Column(column, _INTEGER, f"d.{column}", f"Turns at level {level}, not abstained")
    for name in PERCEIVED:
        yield from _head(f"perceived_{name}", name, "Sum of the probability, 0-1 each")


def _head(name: str, stored: str, about: str) -> Iterator[Column]:
    yield Column(f"{name}_turns", _INTEGER, f"d.{stored}_n", "Turns that the head scored")
    yield _total(f"{name}_sum", f"d.{stored}_total", about)
    yield Column(f"{name}_abstained", _INTEGER, f"d.{stored}_abstained", "Of them abstained")


def _total(name: str, stored: str, about: str) -> Column:
    return Column(name, _NUMBER, f"CAST({stored} AS double precision) / {SCALE}", about)


def _words() -> View:
    bins = list(enumerate(pairwise((*WORDS_FROM, 2 * WORDS_FROM[-1]))))
    table = " UNION ALL ".join(
        f"SELECT {number} AS bin, {first} AS words_from, {below} AS words_below"
        for number, (first, below) in bins
    )
    turns = " ".join(f"WHEN {number} THEN d.words_{number}" for number, _ in bins)
    return View(
        "fact_turn_day_words",
        f"a {_GRAIN}, and bin of the histogram of turns' words",
        (
            *_KEYS,
            Column("words_from", _INTEGER, "b.words_from", "Fewest words of the bin's turns"),
            Column(
                "words_below",
                _INTEGER,
                "b.words_below",
                f"Fewer words than this; the last bin has no upper end, and says {bins[-1][1][1]}",
            ),
            Column("turns", _INTEGER, f"CASE b.bin {turns} END", "Turns with so many words"),
        ),
        f"FROM rollup_turn_days AS d\nCROSS JOIN ({table}) AS b",
    )


def _shown(dialect: Dialect) -> View:
    """Hidden where the day's cell is: the sums are over the same sessions."""
    keys = (
        Column("date", _DATE, "d.day", "UTC, of the session's first turn"),
        Column("bundle", _TEXT, "d.bundle", "Joins `dim_bundle`; compare within one bundle"),
        Column("role", _TEXT, "d.role", "client or counsellor"),
    )
    shares = [
        Column("turns", _INTEGER, "sum(d.turns)", "Turns with a final score"),
        _ratio("late_share", "late", "turns", "0-1, out of order, too late"),
        _ratio("truncated_share", "truncated", "turns", "0-1, longer than the encoder reads"),
        _ratio("confidence", "confidence", "turns", "0-1, mean", SCALE),
        _ratio("words", "words", "words_n", "Mean number of words"),
    ]
    for name in (*MECHANISMS, *PERCEIVED):
        shown = f"perceived_{name}" if name in PERCEIVED else name
        about = "0-1, mean probability" if name in PERCEIVED else "0-2, mean expected level"
        shares += [
            _ratio(f"{shown}_expected", f"{name}_total", f"{name}_n", about, SCALE),
            _ratio(f"{shown}_abstained", f"{name}_abstained", f"{name}_n", "0-1, share abstained"),
        ]
    return View(
        "shown_day_turn",
        "a day, over all teams, bundle and role; days that `shown_day` hides are left out",
        (*keys, *shares),
        "FROM rollup_turn_days AS d\n"
        "JOIN rollup_cells AS c ON c.kind = 'day' AND c.start = d.day AND c.bundle = d.bundle\n"
        f"WHERE NOT c.hidden AND c.until <= {dialect.today()}\n"
        f"GROUP BY d.day, d.bundle, d.role HAVING sum(d.sessions) >= {FEWEST_CLIENTS}",
    )


def _ratio(name: str, part: str, whole: str, about: str, scale: int = 1) -> Column:
    few = f"sum(d.{whole}) < {FEWEST_CLIENTS}"
    value = f"CAST(sum(d.{part}) AS double precision) / sum(d.{whole}) / {scale}"
    return Column(name, _NUMBER, f"CASE WHEN NOT {few} THEN {value} END", about)
