"""The written turns, the crisis probe's fit, and the tables of docs/crisis.md."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

from models.crisis import figures, turns
from models.crisis.__main__ import BUNDLES, PAGE
from models.crisis.fitting import BUDGET, Training, fit_probe
from models.pages.tables import with_tables

ALL = turns.read()
KNOWN, HELD_OUT = turns.split(ALL)


def test_no_family_is_in_both_parts_and_every_category_is_in_both() -> None:
    assert len(ALL) == len(KNOWN) + len(HELD_OUT) == len({turn.text for turn in ALL}) >= 600
    assert not {turn.family for turn in KNOWN} & {turn.family for turn in HELD_OUT}
    assert {turn.category for turn in KNOWN} == {turn.category for turn in HELD_OUT}
    assert [turn.id for turn in ALL] == list(range(1, len(ALL) + 1))
    assert {turn.label for turn in ALL} == {"yes", "no"}


def test_the_order_of_the_lines_does_not_change_the_split() -> None:
    again = turns.split(ALL[::-1])
    assert {turn.id for turn in again[1]} == {turn.id for turn in HELD_OUT}


def test_the_second_pass_covers_the_test_part() -> None:
    second = turns.second_labels()
    assert second.keys() == {turn.id for turn in HELD_OUT}
    found = figures.kappa(HELD_OUT, second)
    assert 0 < found["different"] < 20
    assert figures.kappa(HELD_OUT, {t.id: t.label for t in HELD_OUT})["kappa"] == 1.0


def test_the_probe_finds_what_differs_and_keeps_the_budget() -> None:
    chance = np.random.default_rng(2)
    is_crisis = np.arange(160) % 2 == 0
    written, assumed = chance.normal(size=(160, 12)), chance.normal(size=(2000, 12))
    written[is_crisis, 3] += 4.0
    families = np.arange(160) // 4
    found = fit_probe(Training(written, is_crisis, families, assumed))
    hits = found.probe.probabilities(written) >= 0.5
    assert hits[is_crisis].mean() > 0.6
    assert hits[~is_crisis].mean() < 0.1
    unseen = found.probe.probabilities(chance.normal(size=(20_000, 12)))
    assert (unseen >= 0.5).mean() < 5 * BUDGET
    eager = found.probe.probabilities(written) >= found.for_recall
    assert eager[is_crisis].mean() >= 0.9
    assert hits.sum() <= eager.sum()


def test_recall_precision_and_categories_are_counted() -> None:
    crisis = [turn for turn in HELD_OUT if turn.is_crisis][:4]
    other = [turn for turn in HELD_OUT if not turn.is_crisis][:4]
    hit = np.array([True, True, True, False, True, False, False, False])
    report = figures.measure([*crisis, *other], {"list": hit})
    found = report["detectors"]["list"]
    assert (found["recall"]["value"], found["precision"]["value"]) == (0.75, 0.75)
    assert report["crisis"] == 4
    assert sum(own["list"] for own in report["categories"].values()) == 4
    spoken = [replace(turn, text="I want to kill myself") for turn in crisis]
    values = np.array([0.6, 0.5, 0.4, 0.1])
    both = figures.hits([turn.text for turn in spoken], values, 0.2)
    assert both[figures.LIST].all()
    assert both[figures.HEAD].tolist() == [True, True, False, False]
    assert both[figures.EAGER].tolist() == [True, True, True, False]


def test_the_page_has_the_tables_of_the_shipped_bundles() -> None:
    stored = {
        bundle.name: json.loads((bundle / "bundle.json").read_text("utf-8"))["metrics"]["crisis"]
        for bundle in BUNDLES
    }
    page = PAGE.read_text("utf-8")
    assert with_tables(page, figures.tables(stored)) == page


@pytest.mark.usefixtures("all_resamples")
def test_the_stored_figures_of_the_list_are_those_of_the_list_in_force() -> None:
    stored = json.loads((BUNDLES[0] / "bundle.json").read_text("utf-8"))["metrics"]["crisis"]
    found = figures.hits([turn.text for turn in HELD_OUT], np.zeros(len(HELD_OUT)), 1.0)
    own = figures.measure(HELD_OUT, found)["detectors"][figures.LIST]
    assert own == stored["written"]["detectors"][figures.LIST], "run python -m models.crisis fit"
