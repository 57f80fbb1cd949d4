"""What counting words reaches on the reader's figures, and how far people agree."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from models.labels import CLIENT, COUNSELLOR
from models.pages.tables import with_tables
from models.reader.evaluation import baselines, ceilings, page
from models.reader.examples import Example
from models.reader.tasks import tasks_of

SIDES = ("we", "the"), ("I", "a")


def test_raters_who_agree_reach_one_and_random_ones_nothing() -> None:
    chance = np.random.default_rng(0)
    levels = chance.integers(1, 6, 400)
    same = ceilings.one_against_the_others([(level,) * 3 for level in levels.tolist()], 5)
    other = ceilings.one_against_the_others(chance.integers(1, 6, (400, 3)).tolist(), 5)
    assert same["alpha"] == same["one against the others"]["value"] == 1.0
    assert abs(other["alpha"]) < 0.1
    assert abs(other["one against the others"]["value"]) < 0.15


def test_severe_raters_are_a_share_of_the_variance() -> None:
    raters = [name for name in "abcd" for _ in range(5)]
    severe = [float(ord(name)) for name in raters]
    assert ceilings.share_of_raters(severe, raters) == 1.0
    assert ceilings.share_of_raters([1.0, 2.0, 3.0, 4.0, 5.0] * 4, raters) == 0.0


def quartets(count: int) -> list[Example]:
    """Two clients, two answers, each right for one of them."""
    found = []
    for number in range(count):
        for own, other in ((0, 1), (1, 0)):
            turns = ((CLIENT, f"{SIDES[own][0]} lost {number}"),)
            for side, better in ((own, True), (other, False)):
                found.append(
                    Example(
                        "quartets",
                        f"voice {number % 10}",
                        COUNSELLOR,
                        f"{SIDES[side][1]} sorry {number}",
                        turns,
                        pair=f"{number}-{own}",
                        better=better,
                    )
                )
    return found


def chats(count: int) -> list[Example]:
    """Answers whose level their words give away."""
    return [
        Example(
            "wassa_chats",
            f"chat {number}",
            COUNSELLOR,
            " ".join(["sad" if number % 2 else "fine"] * (1 + number % 3)),
            ((CLIENT, "hello there"),),
            {},
            ("turn_empathy", number % 2),
        )
        for number in range(count)
    ]


def crisis(count: int) -> list[Example]:
    return [
        Example(
            "crisis_cssrs",
            f"post {number}",
            CLIENT,
            f"so I end it today {number}" if number % 2 else f"so I end item {number}",
            (),
            {"crisis": float(number % 2)},
        )
        for number in range(count)
    ]


def test_words_solve_what_words_solve_and_no_quartet() -> None:
    lexicon = dict.fromkeys(baselines.SUICIDAL, ("end it",))
    pattern = baselines.lexicon_pattern(lexicon)
    found = baselines.baselines([*quartets(60), *chats(60), *crisis(60)], pattern)
    everything = found["all folds"]
    assert everything["pairs: quartets"]["words"] == 0.5
    assert everything["pairs: quartets"]["client and answer"] == 0.5
    assert everything["turn empathy (WASSA)"]["words"] > 0.8
    assert abs(everything["turn empathy (WASSA)"]["length"]) < 0.3
    assert everything["crisis: C-SSRS"]["lexicon"] == 1.0
    assert "client and answer" not in everything["crisis: C-SSRS"]
    assert found["two folds"]["pairs: quartets"]["rows"] < everything["pairs: quartets"]["rows"]


def test_manners_are_fitted_together_because_one_manner_is_no_better() -> None:
    examples = []
    for number in range(80):
        for better, worse in (("plain", "warm"), ("warm", "plain")):
            for text, is_better in ((better, True), (worse, False)):
                examples.append(
                    Example(
                        f"manners_{better}_{worse}",
                        f"voice {number % 10}",
                        COUNSELLOR,
                        f"{text} words",
                        ((CLIENT, "hello"),),
                        pair=f"{number}-{better}",
                        better=is_better,
                    )
                )
    pattern = baselines.lexicon_pattern(dict.fromkeys(baselines.SUICIDAL, ("end it",)))
    found = baselines.baselines(examples, pattern)["all folds"]
    shares = [found[f"pairs: manners_{kind}"]["words"] for kind in ("plain_warm", "warm_plain")]
    assert sum(shares) == 1.0


def test_a_task_measures_any_score_of_its_units() -> None:
    examples = crisis(40)
    (task,) = tasks_of(examples, np.ones(40, bool))
    score = np.random.default_rng(1).normal(size=(40, 1))
    own = task.score_of({"crisis": score})
    known = roc_auc_score(task.truth, score[:, 0])
    assert task.statistic(np.arange(40), own) == pytest.approx(known)


def test_every_figure_of_the_page_stands_beside_what_words_reach() -> None:
    words = json.loads(baselines.OUT.read_text(encoding="utf-8"))
    for run, names in page.STORED.items():
        for name in names:
            figures = json.loads((page.FIGURES / f"{name}.json").read_text(encoding="utf-8"))
            missing = [each for each in figures if "words" not in words[run].get(each, {})]
            assert not missing, name


def test_the_pages_hold_the_stored_figures() -> None:
    for path, tables in page.written().items():
        text = path.read_text(encoding="utf-8")
        assert with_tables(text, tables) == text, path.name
