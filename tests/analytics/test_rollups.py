"""Roll-ups: the same whatever the order, and what is hidden does not follow from what is shown."""

import random
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest

from stream_app.analytics.rollups import cells, rollups
from stream_app.analytics.views import hidden_cells, schema
from stream_app.analytics.views.hidden_cells import Equation, Size
from stream_app.store.database import tables
from stream_app.store.lifecycle import erasure
from stream_app.store.stream.repository import Store
from tests.store import batches
from tests.store.reading import rows

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ROLLED = (
    tables.rollup_sessions,
    tables.rollup_counsellors,
    tables.rollup_cells,
    tables.rollup_means,
    tables.rollup_turns,
    tables.rollup_turn_days,
)


def rolled(store: Store) -> list[list[dict[str, Any]]]:
    return [rows(store, table) for table in ROLLED]


def session(number: int, day: str) -> list[bytes]:
    name = f"s{number}"
    facts = {"session_id": name, "team": f"t{number % 3}", "domain": "counselling"}
    events = [
        batches.turn(
            seq,
            **facts,
            speaker_id=f"c{number % 4}" if seq % 2 else f"client {number}",
            occurred_at=f"{day}T10:0{seq}:00Z",
        )
        for seq in range(4)
    ]
    return [*events, batches.end(session_id=name, occurred_at=f"{day}T11:00:00Z")]


DAYS = ("2025-11-30", "2025-12-31", "2026-01-01", "2026-02-27", "2026-03-02", "2026-03-29")


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_updates_in_any_order_give_what_a_rebuild_gives(store: Store, seed: int) -> None:
    order = [(number, DAYS[number % len(DAYS)]) for number in range(18)]
    random.Random(seed).shuffle(order)
    for place, (number, day) in enumerate(order):
        store.commit(batches.process(session(number, day)))
        if place % 4 == 3:
            list(rollups.update(store))
        if place % 6 == 5:
            erasure.erase(store, [f"s{order[place - 2][0]}"], NOW)
    again = batches.turn(9, session_id=f"s{order[-1][0]}", occurred_at=f"{order[-1][1]}T12:00:00Z")
    states = store.load_states([f"s{order[-1][0]}"], batches.BUNDLE)
    store.commit(batches.process([again], states))
    list(rollups.update(store))
    found = rolled(store)
    assert found[2]
    assert not rows(store, tables.rollup_marks)
    rollups.rebuild(store)
    assert rolled(store) == found


def test_an_erased_counsellor_leaves_nothing_behind(store: Store) -> None:
    store.commit(batches.process(session(1, DAYS[0])))
    list(rollups.update(store))
    erasure.erase(store, ["s1"], NOW)
    assert store.privacy.pseudonym("c1") not in repr(rolled(store))
    list(rollups.update(store))
    assert rolled(store) == [[]] * len(ROLLED)


def rank(matrix: list[list[Fraction]]) -> int:
    """By elimination in fractions: no rounding."""
    matrix, found = [list(row) for row in matrix], 0
    for column in range(len(matrix[0]) if matrix else 0):
        pivot = next((r for r in range(found, len(matrix)) if matrix[r][column]), None)
        if pivot is None:
            continue
        matrix[found], matrix[pivot] = matrix[pivot], matrix[found]
        for row in range(found + 1, len(matrix)):
            factor = matrix[row][column] / matrix[found][column]
            matrix[row] = [a - factor * b for a, b in zip(matrix[row], matrix[found], strict=True)]
        found += 1
    return found


@pytest.mark.parametrize("seed", range(12))
def test_no_hidden_value_follows_from_what_is_shown(seed: int) -> None:
    chance = random.Random(seed)
    parts = {(t, w): chance.choice([3, 8, 15, 40]) for t in range(4) for w in range(4)}
    sums: dict[Any, int] = dict(parts)
    equations = []
    for t in range(4):
        own = tuple((t, w) for w in range(4))
        sums[t, "all"] = sum(parts[key] for key in own)
        equations.append(Equation((t, "all"), own))
    for w in (*range(4), "all"):
        own = tuple((t, w) for t in range(4))
        sums["all", w] = sum(sums[key] for key in own)
        equations.append(Equation(("all", w), own))
    equations.append(Equation(("all", "all"), tuple(("all", w) for w in range(4))))
    sizes = {key: Size(n, n, 0 if "all" not in key else 1) for key, n in sums.items()}
    gone = hidden_cells.hidden(sizes, equations)
    assert gone >= {key for key, size in sizes.items() if size.too_small}
    assert gone == hidden_cells.hidden(dict(reversed(sizes.items())), equations[::-1])
    places = {key: i for i, key in enumerate(sorted(gone, key=repr))}
    system = []
    for equation in equations:
        row = [Fraction(0)] * len(places)
        for key in equation.parts:
            if key in places:
                row[places[key]] += 1
        if equation.total in places:
            row[places[equation.total]] -= 1
        system.append(row)
    for place in places.values():
        unit = [Fraction(int(i == place)) for i in range(len(places))]
        assert rank([*system, unit]) > rank(system)


def test_small_cells_are_hidden_in_the_views(store: Store) -> None:
    for number in range(6):
        store.commit(batches.process(session(number, DAYS[0])))
    list(rollups.update(store))
    schema.create_views(store)
    with store.reading() as connection:
        shown = connection.exec_driver_sql("SELECT * FROM shown_month").mappings().all()
        means = connection.exec_driver_sql("SELECT * FROM shown_month_measure").all()
    assert shown
    assert all(row["hidden"] and row["sessions"] is None for row in shown)
    assert not means
    assert cells.KINDS
