"""Correlations of heads and ratings, on synthetic sessions with known results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("statsmodels")

from models.data.rated_sessions import RatedSession, RatedTurn
from models.evaluate import multitrait
from models.evaluate.multitrait import Rated
from models.evaluate.ratings import Fold
from models.evaluate.resampling import partial_spearman, spearman
from models.fit.perceived import Outcomes, Share
from models.fit.turn_features import VIEWS
from models.labels import CLIENT, COUNSELLOR, OUTCOME_HEADS
from models.pages import document, sections
from models.pages.report import rounded

SIZE = 400


def rated(seed: int = 0) -> Rated:
    """`sympathy` follows the rating, `file` only the file, `noise` nothing.

    The failed file (1) has the lower ratings.
    """
    chance = np.random.default_rng(seed)
    file = (np.arange(SIZE) % 4 == 0).astype(np.int64)
    rating = chance.normal(size=SIZE) - 2.0 * file
    scores = {
        "sympathy": rating + chance.normal(size=SIZE),
        "file": -file + 0.3 * chance.normal(size=SIZE),
        "noise": chance.normal(size=SIZE),
    }
    own = frozenset({"sympathy"})
    return Rated("ESConv empathy", rating, scores, file, np.arange(SIZE), own)


def test_a_head_that_recognises_the_file_has_no_partial_correlation() -> None:
    cells = {cell["head"]: cell for cell in multitrait.table([rated()])["cells"]}
    assert cells["file"]["spearman"] > 0.4
    assert cells["file"]["partial"]["low"] < 0 < cells["file"]["partial"]["high"]
    assert cells["file"]["p_holm"] > multitrait.ALPHA
    assert cells["sympathy"]["partial"]["low"] > 0.4
    assert cells["sympathy"]["p_holm"] < 1e-6
    assert [cell["own"] for cell in cells.values()] == [True, False, False]


def test_p_values_are_corrected_over_all_ratings_together() -> None:
    """Holm: the smallest of m is multiplied by m, the largest is unchanged, the order is kept."""
    content = multitrait.table([rated(seed) for seed in range(4)])
    cells = content["cells"]
    assert content["tests"] == len(cells) == 12
    ordered = sorted(cells, key=lambda cell: cell["p"])
    assert ordered[0]["p_holm"] == pytest.approx(12 * ordered[0]["p"])
    corrected = [cell["p_holm"] for cell in ordered]
    assert corrected == sorted(corrected)
    assert all(cell["p_holm"] >= cell["p"] for cell in cells)


def test_without_a_control_the_partial_correlation_is_the_plain_one() -> None:
    chance = np.random.default_rng(1)
    x, y = chance.normal(size=(2, 50))
    assert partial_spearman(x, y, np.zeros((50, 0))) == pytest.approx(spearman(x, y))
    assert np.isnan(partial_spearman(x, np.ones(50), np.zeros((50, 0))))


def test_ratings_of_one_session_count_once_in_the_p_value() -> None:
    assert multitrait.p_value(0.3, 50, 0) > multitrait.p_value(0.3, 500, 0)  # type: ignore[operator]
    assert multitrait.p_value(0.3, 50, 1) > multitrait.p_value(0.3, 50, 0)  # type: ignore[operator]
    assert multitrait.p_value(float("nan"), 50, 0) is None
    assert multitrait.p_value(0.3, 2, 0) is None


def test_equal_heads_are_not_distinguished() -> None:
    item = rated()
    scores = {"sympathy": item.scores["sympathy"], "noise": item.scores["noise"]}
    chance = np.random.default_rng(2)
    scores["understanding"] = scores["sympathy"] + 0.1 * chance.normal(size=SIZE)
    alike = Rated(item.name, item.rating, scores, item.file, item.session, item.own)
    found = {row["other"]: row for row in multitrait.distinguishable([alike], resamples=300)}
    assert not found["understanding"]["distinguishable"]
    assert found["noise"]["distinguishable"]
    pairs = {tuple(p["heads"]): p for p in multitrait.between_heads(alike)["pairs"]}
    assert pairs["sympathy", "understanding"]["partial"] > 0.95
    assert abs(pairs["sympathy", "noise"]["partial"]) < 0.15


def chat(number: int, source: str) -> RatedSession:
    turns = [RatedTurn(CLIENT if i % 2 == 0 else COUNSELLOR, "i feel sad") for i in range(6)]
    rating = 1 + number % 5
    return RatedSession(
        source, f"{source}:{number}", turns, empathy=rating, relevance=rating, fall=rating - 3
    )


def folds_of(sessions: list[RatedSession]) -> list[Fold]:
    """Two folds whose sympathy equals the chat's rating and whose other heads are uninformative."""
    starts = np.cumsum([0, *(len(session.turns) for session in sessions)])
    chance = np.random.default_rng(3)
    heads = {head: chance.normal(size=(int(starts[-1]), 2)) for head in OUTCOME_HEADS}
    ratings = np.repeat([float(session.empathy or 0) for session in sessions], 6)
    heads["sympathy"] = np.stack([np.zeros_like(ratings), ratings], axis=1)
    logits = {view: {h: v.astype(np.float32) for h, v in heads.items()} for view in VIEWS}
    keys = [session.key for session in sessions]
    outcomes = Outcomes(keys, starts, logits, logits)
    return [Fold(number, Share(17, number, 2), outcomes) for number in range(2)]


def test_the_table_is_made_from_fold_outputs_and_printed(tmp_path: Path) -> None:
    sessions = [chat(n, "esconv_failed" if n % 4 == 0 else "esconv") for n in range(80)]
    members = folds_of(sessions)
    given = multitrait.rated_by(sessions, members)
    assert {item.name for item in given} >= {"ESConv empathy", "ESConv relevance", "ESConv fall"}
    empathy = next(item for item in given if item.name == "ESConv empathy")
    assert len(empathy.rating) == 80, "each chat once, in the fold that held it out"
    assert empathy.own == {"sympathy"}
    assert set(empathy.file.tolist()) == {0, 1}
    assert set(empathy.scores) == set(multitrait.PERCEIVED)
    chats = multitrait.whole_chats(sessions, members)
    assert len(chats.rating) == 80
    content = rounded(multitrait.report(given, chats)) | {"folds": [0, 1]}
    cell = next(
        cell
        for cell in content["cells"]
        if (cell["head"], cell["rating"]) == ("sympathy", "ESConv empathy")
    )
    assert cell["partial"]["value"] > 0.99
    text = sections.multitrait(content)
    assert "| ESConv empathy | 80 |" in text
    assert "**1.00 (1.00 to 1.00)**\\*" in text
    assert "| sympathy | understanding | ESConv empathy |" in text
    perceived = next(part for part in document.PARTS if part.name == "perceived")
    page = document.page(perceived, {"multitrait": content}, tmp_path)
    assert "## Do the perceived heads differ?\n\n2 folds (number 0, 1)." in page
