"""A month of a platform as linked cells, and what a reader can work out about hidden ones."""

import random
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final

import numpy as np
from scipy.optimize import linprog

from stream_app.analytics.rollups import cells
from stream_app.analytics.rollups.cells import Cell
from stream_app.analytics.views.hidden_cells import Equation, Key, Size

MONTH: Final = date(2025, 3, 1)
SMALLER: Final = ("peer-support", "service", "debt advice")


def month(
    seed: int, *, counsellors: int = 30, teams: int = 2, sessions: int = 105, domains: int = 2
) -> dict[Key, Cell]:
    """Cells by key: sessions of random counsellors, a half of whom joined in the same year."""
    draw = random.Random(seed)
    names = ["counselling", *SMALLER[: domains - 1]]
    people = [
        (number, f"team {number % teams}", draw.choices((2023, 2024, 2025), (0.5, 0.35, 0.15))[0])
        for number in range(counsellors)
    ]
    found = []
    for _ in range(sessions):
        who, team, cohort = draw.choice(people)
        day = MONTH + timedelta(days=draw.randrange(31))
        found.append(
            {
                "counsellor": who,
                "team": team,
                "cohort": cohort,
                "client": draw.randrange(sessions),
                "domain": draw.choices(names, [0.7] + [0.3 / (domains - 1)] * (domains - 1))[0],
                "day": day,
                "week": day - timedelta(days=day.weekday()),
                "month": MONTH,
            }
        )
    return {cell.key: cell for kind in cells.KINDS[:-1] for cell in _of(kind, found)}


def _of(kind: cells.Kind, sessions: Sequence[Mapping[str, Any]]) -> list[Cell]:
    grouped = defaultdict(list)
    for each in sessions:
        grouped[each[kind.start.name], *(each[name] for name in kind.by)].append(each)
    blank = {"team": "", "domain": "", "cohort": 0, "counsellor": "", "month": MONTH}
    return [
        Cell(
            kind,
            {
                **blank,
                "kind": kind.name,
                "start": start,
                **dict(zip(kind.by, rest, strict=True)),
                "sessions": len(some),
                "clients": len({each["client"] for each in some}),
                "counsellors": len({each["counsellor"] for each in some}),
            },
            [],
        )
        for (start, *rest), some in grouped.items()
    ]


def sizes(of: Mapping[Key, Cell]) -> dict[Key, Size]:
    """As the roll-ups judge them."""
    return {
        key: Size(cell.row["clients"], cell.row["counsellors"], cell.kind.rank)
        for key, cell in of.items()
    }


def bounds(
    values: Mapping[Key, int], equations: Sequence[Equation], gone: Collection[Key], key: Key
) -> tuple[float, float]:
    """The least and the most that a hidden count can be, given all that is shown."""
    places = {each: place for place, each in enumerate(sorted(gone, key=repr))}
    rows, right = [], []
    for equation in equations:
        row, known = np.zeros(len(places)), 0.0
        for each, sign in [(equation.total, -1.0), *((part, 1.0) for part in equation.parts)]:
            if each in places:
                row[places[each]] += sign
            else:
                known += sign * values[each]
        rows.append(row)
        right.append(-known)
    found = []
    for sign in (1.0, -1.0):
        cost = np.zeros(len(places))
        cost[places[key]] = sign
        solved = linprog(cost, A_eq=np.array(rows), b_eq=right, bounds=(0, None), method="highs")
        assert solved.success
        found.append(sign * float(solved.fun))
    return found[0], found[1]
