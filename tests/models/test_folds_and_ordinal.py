"""The ordinal loss and the folds, against values computed by hand."""

from __future__ import annotations

import hashlib
from collections import Counter
from math import log

import pytest

pytest.importorskip("torch")

import torch

from models.data.corpora import Conversation
from models.data.split import fold_of, key_of, split_fold
from models.model import losses

EVEN = torch.zeros(1, 3)


def target(label: int) -> torch.Tensor:
    return torch.eye(3)[label : label + 1]


def certain(label: int) -> torch.Tensor:
    """Logits with zero probability for the other labels."""
    return 60.0 * target(label)


def test_ordinal_is_cross_entropy_plus_squared_distance_of_the_cumulated() -> None:
    """Even odds cumulate to 1/3, 2/3, 1; the label "none" to 1, 1, 1: 4/9 + 1/9."""
    assert losses.ordinal(EVEN, target(0)).item() == pytest.approx(log(3) + 5 / 9)
    # "weak" cumulates to 0, 1, 1: 1/9 + 1/9.
    assert losses.ordinal(EVEN, target(1)).item() == pytest.approx(log(3) + 2 / 9)


def test_ordinal_costs_more_the_further_the_label() -> None:
    near, far = (losses.ordinal(certain(given), target(0)) for given in (1, 2))
    plain = losses.cross_entropy(certain(1), target(0))
    assert near.item() == pytest.approx(plain.item() + 1)
    assert far.item() == pytest.approx(plain.item() + 2)


def test_ordinal_of_a_certain_correct_answer_is_zero() -> None:
    assert losses.ordinal(certain(2), target(2)).item() == pytest.approx(0, abs=1e-6)


def test_ordinal_weights_only_the_cross_entropy() -> None:
    weights = torch.tensor([2.0, 1.0, 1.0])
    assert losses.ordinal(EVEN, target(0), weights).item() == pytest.approx(2 * log(3) + 5 / 9)


def test_ordinal_accepts_votes() -> None:
    """Half "none", half "strong" cumulates to 1/2, 1/2, 1: 1/36 + 1/36."""
    votes = torch.tensor([[0.5, 0.0, 0.5]])
    assert losses.ordinal(EVEN, votes).item() == pytest.approx(log(3) + 1 / 18)


def test_the_heads_ordinal_loss_uses_the_class_weights() -> None:
    counts = torch.tensor([16.0, 4.0, 1.0])
    loss = losses.HeadLoss("ordinal", counts)(EVEN, target(2))
    # 1/sqrt(count) = 1/4, 1/2, 1; weighted counts 4 + 2 + 1 over 21 items: times 3.
    assert loss.item() == pytest.approx(3 * log(3) + 5 / 9, rel=1e-5)


def test_a_fold_is_a_hash_of_seed_and_key() -> None:
    digest = hashlib.sha256(b"17:fold:epitome:p1").digest()
    expected = int(int.from_bytes(digest[:8], "big") / 2**64 * 5)
    assert fold_of("epitome:p1", 17, 5) == expected


def test_folds_are_about_equal_and_move_with_the_seed() -> None:
    keys = [f"esconv:{number}" for number in range(5000)]
    folds = [fold_of(key, 17, 5) for key in keys]
    assert set(folds) == set(range(5))
    assert all(count == pytest.approx(1000, abs=110) for count in Counter(folds).values())
    assert folds != [fold_of(key, 18, 5) for key in keys]


def test_split_fold_keeps_order_and_keys_and_tests_everything_once() -> None:
    """Two conversations per key, like two responses to one post."""
    given = [Conversation("epitome", f"p{number // 2}", []) for number in range(200)]
    tested: list[Conversation] = []
    for fold in range(5):
        parts = split_fold(given, fold, 5, 17)
        assert [c for c in given if c in parts["train"]] == parts["train"]
        keys = {part: {key_of(c) for c in own} for part, own in parts.items()}
        assert not keys["train"] & keys["test"]
        assert len(parts["train"]) + len(parts["test"]) == 200
        tested += parts["test"]
    assert sorted(map(key_of, tested)) == sorted(map(key_of, given))


def test_items_with_a_fixed_part_are_never_moved() -> None:
    trains = Conversation("contrast", "uss_sgd", [], part="train")
    tests = Conversation("empathetic_intents", "9", [], part="test")
    for fold in range(5):
        assert split_fold([trains, tests], fold, 5, 17) == {"train": [trains], "test": [tests]}
