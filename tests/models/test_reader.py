"""The reader's examples, losses and written material; small encoders with random weights."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from models.labels import CLIENT, COUNSELLOR
from models.reader import written
from models.reader.examples import Example, Marks, pairs_of, token_ids
from models.reader.model import GradedResponse
from models.reader.train import Read, Recipe, collate, epoch, loss_of

MARKS = Marks(1, 2, (2,), ([10, 3], [11, 3]))
VOICES = sorted(path.name for path in written.CONTRAST.iterdir() if path.is_dir())


def ids_of(text: str) -> list[int]:
    return [100 + int(word) for word in text.split()]


def test_the_turn_that_is_read_follows_the_turns_before_it() -> None:
    example = Example("c", "k", COUNSELLOR, "5 6", ((CLIENT, "1 2"), (COUNSELLOR, "3")))
    ids, start = token_ids(example, ids_of, MARKS)
    assert ids == [1, 10, 3, 101, 102, 11, 3, 103, 2, 11, 3, 105, 106, 2]
    assert start == 9


def test_the_oldest_words_are_cut_first() -> None:
    long = " ".join("7" for _ in range(500))
    example = Example("c", "k", COUNSELLOR, "5", ((CLIENT, long), (CLIENT, "1")))
    ids, start = token_ids(example, ids_of, MARKS)
    assert ids[start - 2] == 101  # the last word before the separator
    assert start <= 162


def test_a_pair_needs_both_of_its_answers() -> None:
    better, worse = (Example("c", "k", COUNSELLOR, "x", pair="p", better=b) for b in (True, False))
    alone = Example("c", "k", COUNSELLOR, "x", pair="q", better=True)
    assert pairs_of([worse, alone, better]) == [(2, 0)]


def test_a_graded_response_prefers_the_level_of_the_latent_trait() -> None:
    scales = GradedResponse()
    low, high = torch.tensor([-3.0]), torch.tensor([3.0])
    worst, best = torch.tensor([0]), torch.tensor([4])
    assert scales("understood", low, worst) < scales("understood", low, best)
    assert scales("understood", high, best) < scales("understood", high, worst)
    thresholds = scales.thresholds("understood")
    assert (thresholds.diff() > 0).all()


def test_the_words_of_an_answer_pull_less_on_a_pair_that_they_solve() -> None:
    def gradient(bias: float) -> float:
        reads = [
            Read(Example("c", "k", COUNSELLOR, "x", pair="p", better=b, bias=bias), [1, 2], 1)
            for b in (True, False)
        ]
        batch = collate(reads, 0)
        logits = torch.zeros(2, 24, requires_grad=True)
        loss_of(logits, batch, GradedResponse()).backward()
        assert logits.grad is not None
        return float(logits.grad[0, 0].abs())

    assert gradient(3.0) < gradient(0.0)


def test_pairs_stay_in_one_batch() -> None:
    reads = [
        Read(Example("c", "k", COUNSELLOR, "x", pair=f"p{n}", better=b), [1] * (n % 7 + 2), 1)
        for n in range(50)
        for b in (True, False)
    ]
    for batch in epoch(reads, Recipe(batch=8), 0):
        assert len(pairs_of([read.example for read in batch])) * 2 == len(batch)


@pytest.mark.parametrize("voice", VOICES)
def test_word_counts_of_an_answer_do_not_tell_the_better_edit(voice: str) -> None:
    """As in ``docs/answers.md``: what only words solve teaches nothing about the client."""
    rows = written.rows_of(written.CONTRAST / voice / "edits.jsonl")
    answers = [row[side] for row in rows for side in ("better", "worse")]
    fold = np.random.default_rng(0).permutation(len(rows)) % 5
    right = np.zeros(len(rows), bool)
    for part in range(5):
        seen = np.repeat(fold != part, 2)
        counts = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
        known = counts.fit_transform([a for a, keep in zip(answers, seen, strict=True) if keep])
        model = LogisticRegression(C=3, max_iter=500).fit(known, np.tile([1, 0], seen.sum() // 2))
        value = model.decision_function(counts.transform(answers))
        right[fold == part] = (value[0::2] > value[1::2])[fold == part]
    assert right.mean() <= 0.6


def test_every_answer_of_a_quartet_is_once_the_better_and_once_the_worse() -> None:
    for voice in VOICES:
        rows = written.rows_of(written.CONTRAST / voice / "quartets.jsonl")
        examples = list(written.quartets(rows, voice))
        better = sorted(each.text for each in examples if each.better)
        assert better == sorted(each.text for each in examples if not each.better)


def test_eight_voices_are_written() -> None:
    total = {
        name: sum(len(written.rows_of(written.CONTRAST / v / f"{name}.jsonl")) for v in VOICES)
        for name in ("quartets", "edits", "manners")
    }
    assert len(VOICES) == 8
    assert total["quartets"] >= 900
    assert total["edits"] >= 1500
    assert total["manners"] == 320


def test_a_missing_file_has_no_rows() -> None:
    assert written.rows_of(Path("nothing.jsonl")) == []
