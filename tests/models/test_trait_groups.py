"""Groups of heads shown as one value, on synthetic figures with known results."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("statsmodels")

from models.evaluate.multitrait import write_groups
from models.evaluate.trait_groups import grouped, perceived_values
from models.pages import sections
from stream_app.inference.bundles import bundle as bundles

HEADS = ("engagement", "understanding", "sympathy", "helpfulness")
RATINGS = {"understanding": "ESConv relevance", "sympathy": "ESConv empathy"}


def figure(value: float, half: float = 0.05) -> dict[str, float]:
    return {"value": value, "low": value - half, "high": value + half}


def cell(head: str, rating: str, value: float, sessions: int = 100) -> dict[str, Any]:
    own = RATINGS.get(head) == rating
    about = {"head": head, "rating": rating, "own": own, "n": 2 * sessions, "sessions": sessions}
    return {**about, "p_holm": 0.01, "partial": figure(value)}


def content(
    correlated: Mapping[tuple[str, str], float], apart: Mapping[tuple[str, str], bool]
) -> dict[str, Any]:
    """A multitrait.json: correlations of pairs, and whether (head, other) are distinguished."""
    return {
        "protocol": "made up",
        "alpha": 0.05,
        "tests": 1,
        "folds": [0, 1],
        "cells": [cell(head, rating, 0.2) for rating in RATINGS.values() for head in HEADS],
        "between_heads": {
            "over": "chats",
            "n": 100,
            "pairs": [
                {"heads": list(pair), "spearman": value, "partial": value}
                for pair, value in correlated.items()
            ],
        },
        "distinguishable": [
            {
                "head": head,
                "other": other,
                "rating": RATINGS.get(head, "some rating"),
                "difference": figure(0.2 if found else 0.0),
                "distinguishable": found,
            }
            for (head, other), found in apart.items()
        ],
    }


def both(first: str, second: str, found: bool = False) -> dict[tuple[str, str], bool]:
    return {(first, second): found, (second, first): found}


UNDERSTANDING_IS_SYMPATHY = content(
    {("understanding", "sympathy"): 0.92, ("engagement", "sympathy"): 0.1},
    both("understanding", "sympathy") | both("engagement", "sympathy"),
)


def test_correlated_heads_that_predict_no_better_are_one_group() -> None:
    assert grouped(HEADS, UNDERSTANDING_IS_SYMPATHY) == [
        ["engagement"],
        ["understanding", "sympathy"],
        ["helpfulness"],
    ]


def test_uncorrelated_heads_are_separate_groups() -> None:
    found = content({("understanding", "sympathy"): 0.89}, both("understanding", "sympathy"))
    assert [len(group) for group in grouped(HEADS, found)] == [1, 1, 1, 1]


@pytest.mark.parametrize("better", [("understanding", "sympathy"), ("sympathy", "understanding")])
def test_a_head_that_predicts_its_own_rating_better_is_a_separate_group(
    better: tuple[str, str],
) -> None:
    rows = both("understanding", "sympathy") | {better: True}
    found = content({("understanding", "sympathy"): 0.99}, rows)
    assert [len(group) for group in grouped(HEADS, found)] == [1, 1, 1, 1]


def test_heads_compared_in_one_role_only_are_not_joined() -> None:
    one_side = {("understanding", "sympathy"): False}
    found = content({("understanding", "sympathy"): 0.99}, one_side)
    assert [len(group) for group in grouped(HEADS, found)] == [1, 1, 1, 1]


def test_a_chain_of_similar_heads_does_not_join_its_ends() -> None:
    """engagement ~ understanding ~ sympathy, but engagement and sympathy differ."""
    found = content(
        {
            ("engagement", "understanding"): 0.95,
            ("understanding", "sympathy"): 0.95,
            ("engagement", "sympathy"): 0.8,
        },
        both("engagement", "understanding")
        | both("understanding", "sympathy")
        | both("engagement", "sympathy"),
    )
    assert grouped(HEADS, found) == [["engagement", "understanding"], ["sympathy"], ["helpfulness"]]


def test_the_best_member_is_shown_with_the_coefficient_of_most_conversations_first() -> None:
    figures = {**UNDERSTANDING_IS_SYMPATHY, "cells": [
        cell("understanding", "ESConv relevance", 0.15),
        cell("understanding", "ESConv empathy", 0.16),
        cell("sympathy", "ESConv relevance", 0.21, sessions=90),
        cell("sympathy", "ESConv empathy", 0.17),
        cell("sympathy", "ESConv reply", 0.9, sessions=900),
        cell("helpfulness", "ESConv relevance", 0.3),
    ]}  # fmt: skip
    values = perceived_values(figures, {}, ["understanding", "sympathy", "helpfulness"])
    joined, alone = values.groups
    assert (joined.name, joined.members, joined.shown) == (
        "Understanding and sympathy",
        ["understanding", "sympathy"],
        "sympathy",
    )
    assert [(v.rating, v.r, v.sessions) for v in joined.validity] == [
        ("ESConv empathy", 0.17, 100),
        ("ESConv relevance", 0.21, 90),
    ], "no rating that neither head learns from"
    assert joined.validity[0].words == "seekers' empathy ratings"
    assert (joined.validity[0].low, joined.validity[0].high) == (0.12, 0.22)
    assert (alone.members, alone.validity) == (["helpfulness"], [])


def test_an_undefined_coefficient_is_omitted() -> None:
    nothing = {"value": None, "low": None, "high": None}
    figures = {**UNDERSTANDING_IS_SYMPATHY, "cells": [
        {**cell("sympathy", "ESConv empathy", 0.0), "partial": nothing},
        cell("understanding", "ESConv empathy", 0.1),
    ]}  # fmt: skip
    [joined] = perceived_values(figures, {}, HEADS).groups
    assert joined.shown == "understanding"
    assert [v.r for v in joined.validity] == [0.1]


def test_the_rated_answers_head_has_the_coefficient_of_its_evaluation() -> None:
    view = {"n": 500, "conversations": 120, "spearman": figure(0.21)}
    ratings = {"views": {"final": view}}
    heads = ["empathy", *HEADS]
    first = perceived_values(UNDERSTANDING_IS_SYMPATHY, ratings, heads).groups[0]
    assert (first.members, first.validity[0].r, first.validity[0].n) == (["empathy"], 0.21, 500)
    members = [
        g.members for g in perceived_values(UNDERSTANDING_IS_SYMPATHY, ratings, HEADS).groups
    ]
    assert ["empathy"] not in members, "the bundle has no such head"
    unmeasured = perceived_values(UNDERSTANDING_IS_SYMPATHY, {"views": {}}, heads)
    assert all(group.members != ["empathy"] for group in unmeasured.groups)


def test_the_groups_are_in_the_evaluation() -> None:
    text = sections.multitrait(UNDERSTANDING_IS_SYMPATHY)
    assert "| **understanding**, sympathy | ESConv relevance | 100 | 200 | 0.20 (0.15 to" in text


def test_the_command_writes_the_groups_into_a_bundle_that_loads(tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(bundles.DEFAULT_BUNDLE, folder)
    before = json.loads((folder / bundles.MANIFEST).read_text("utf-8"))
    del before["perceived"]
    (folder / bundles.MANIFEST).write_text(json.dumps(before), "utf-8")
    assert bundles.load(folder).manifest.perceived is None
    figures = tmp_path / "multitrait.json"
    figures.write_text(json.dumps(UNDERSTANDING_IS_SYMPATHY), "utf-8")
    written = write_groups(folder, figures)
    assert bundles.load(folder).manifest.perceived == written
    after = json.loads((folder / bundles.MANIFEST).read_text("utf-8"))
    assert {name: part for name, part in after.items() if name != "perceived"} == before
    card = (folder / "MODEL_CARD.md").read_text("utf-8")
    assert "| **understanding**, sympathy | ESConv empathy |" in card


@pytest.mark.parametrize("name", bundles.shipped())
def test_shipped_bundles_match_the_shipped_figures(name: str) -> None:
    folder = bundles.find(name)
    figures = json.loads(Path("docs/evaluation/multitrait.json").read_text("utf-8"))
    ratings = Path("docs/evaluation/ratings.json")
    rated = json.loads(ratings.read_text("utf-8")) if ratings.is_file() else {}
    manifest = bundles.load(folder).manifest
    heads = [h.name for h in manifest.heads if h.dimension is bundles.Dimension.PERCEIVED]
    assert manifest.perceived == perceived_values(figures, rated, heads)
