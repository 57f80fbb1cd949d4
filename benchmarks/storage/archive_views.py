"""DuckDB views over the archive's files with the columns that dashboards read.

The archive has single turns and sessions: sums by day or week are computed from them here, where
PostgreSQL reads roll-ups.
"""

from pathlib import Path
from typing import Final

from stream_app.contracts.scores import MECHANISMS
from stream_app.core.measures.heads import LEVELS
from stream_app.store.database.tables import WORDS_FROM
from stream_app.store.lifecycle.archived import FACTS

VIEWS: Final = (*FACTS, "fact_counsellor_week")
"""A query that reads one of these, or a view whose name begins like it, can read the archive."""
_KEYS: Final = "date, bundle, team, domain, channel, lang, role"


def statements(folder: Path) -> list[str]:
    """Return the statements that create the views, in order."""
    return [*(_fact(folder, name) for name in FACTS), _turn_day(), _words(), _counsellor_week()]


def _fact(folder: Path, name: str) -> str:
    files = f"'{folder}/{name}/*/*.parquet', hive_partitioning = true, union_by_name = true"
    return f"CREATE VIEW {name} AS SELECT * FROM read_parquet({files})"


def _turn_day() -> str:
    heads = [
        f"count({name}_expected) AS {name}_turns, sum({name}_expected) AS {name}_sum, "
        f"count(*) FILTER (WHERE {name}_abstained) AS {name}_abstained, "
        + ", ".join(
            f"count(*) FILTER (WHERE {name} = {level}) AS {name}_level_{level}"
            for level in range(len(LEVELS))
        )
        for name in MECHANISMS
    ]
    return (
        f"CREATE VIEW fact_turn_day AS SELECT {_KEYS}, count(*) AS turns, "
        "count(*) FILTER (WHERE late) AS late_turns, "
        "count(*) FILTER (WHERE truncated) AS truncated_turns, "
        f"sum(confidence) AS confidence_sum, {', '.join(heads)} "
        f"FROM fact_turn WHERE stage = 'final' GROUP BY {_KEYS}"
    )


def _words() -> str:
    bins = list(zip(WORDS_FROM, (*WORDS_FROM[1:], 2 * WORDS_FROM[-1]), strict=True))
    first, below = (
        "CASE " + " ".join(f"WHEN words >= {row[0]} THEN {row[place]}" for row in bins[::-1])
        for place in (0, 1)
    )
    return (
        f"CREATE VIEW fact_turn_day_words AS SELECT {_KEYS}, {first} END AS words_from, "
        f"{below} END AS words_below, count(*) AS turns FROM fact_turn "
        f"WHERE stage = 'final' AND words IS NOT NULL GROUP BY {_KEYS}, words_from, words_below"
    )


def _counsellor_week() -> str:
    return (
        "CREATE VIEW fact_counsellor_week AS SELECT counsellor, joined_on, "
        "CAST(date_trunc('week', date) AS date) AS week, bundle, 'emotional_reactions' AS measure, "
        "count(*) AS n, avg(emotional_reactions_mean) AS mean FROM fact_session JOIN "
        "(SELECT counsellor, min(date) AS joined_on FROM fact_session GROUP BY counsellor) "
        "USING (counsellor) GROUP BY ALL"
    )
