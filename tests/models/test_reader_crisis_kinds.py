"""Recall of crisis language by kind, at thresholds that few ordinary turns pass."""

import numpy as np

from models.crisis.turns import WrittenTurn
from models.reader.evaluation.crisis_kinds import as_table, measured, threshold_of


def turn(number: int, category: str, label: str) -> WrittenTurn:
    return WrittenTurn(number, f"family-{number // 2}", category, label, "x")


def test_as_many_ordinary_turns_pass_as_are_allowed() -> None:
    ordinary = np.random.default_rng(1).random(4000)
    for alarms in (1, 5):
        threshold = threshold_of(ordinary, alarms)
        assert (ordinary >= threshold).sum() == 4 * alarms


def test_hits_are_counted_by_category_and_the_list_counts_at_every_threshold() -> None:
    written = [turn(n, "plan or means", "yes") for n in range(4)]
    written += [turn(n, "idiom", "no") for n in range(4, 8)]
    values = np.array([0.9, 0.6, 0.1, 0.1, 0.6, 0.0, 0.0, 0.0])
    listed = np.array([False, False, True, False] + [False] * 4)
    ordinary = np.linspace(0.0, 0.4, 1000)
    ordinary[-5:] = [0.5, 0.55, 0.55, 0.55, 0.8]
    found = measured(written, values, listed, np.sort(ordinary))
    plan, idiom = found["categories"]["plan or means"], found["categories"]["idiom"]
    one, five = "list or reader, 1 of 1,000", "list or reader, 5 of 1,000"
    assert (plan["list"], plan[one], plan[five]) == (1, 2, 3)
    assert (idiom["list"], idiom[one], idiom[five]) == (0, 0, 1)
    assert found["recall"][five]["value"] == 0.75
    assert "| recall of all, % | yes | 4 | 25" in as_table(found)
