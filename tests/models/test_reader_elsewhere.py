"""Figures of the shipped reader on corpora that nothing was trained on."""

import numpy as np

from models.evaluate.resampling import spearman
from models.reader.evaluation.elsewhere import COLUMNS, as_table, figure, told


def test_a_figure_shows_which_column_follows_the_truth() -> None:
    truth = np.arange(60.0)
    chance = np.random.default_rng(3)
    values = np.stack([truth, -truth, chance.random(60)], 1)
    found = figure(values, truth, [str(n % 12) for n in range(60)], spearman)
    assert found["rows"] == 60
    assert found["answer"]["value"] > 0.99
    assert found["no lapse"]["value"] < -0.99
    assert abs(found["length"]["value"]) < 0.4
    shown = as_table({"a figure": found})
    assert "| a figure | 60 | 1.00 [" in shown
    assert all(name in shown for name in COLUMNS)


def test_where_all_marks_are_alike_nothing_is_told() -> None:
    values = np.array([0.1, 0.9])
    assert np.isnan(told(values, np.array([1.0, 1.0])))
    assert told(values, np.array([0.0, 1.0])) == 1.0
