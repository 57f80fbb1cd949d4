"""The shipped bundle in ONNX Runtime; scores do not depend on other turns in the call."""

import json
from datetime import timedelta

import numpy as np
import pytest

from stream_app import bootstrap
from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, Stage
from stream_app.core.measures.window import Neighbour, ScoringRequest, WindowTurn
from stream_app.core.session.ports import HeadScores
from stream_app.errors import ProviderError
from stream_app.inference.bundles.bundle import load
from stream_app.inference.bundles.calibration import choose_labels
from stream_app.inference.devices.provider_choice import Provider
from stream_app.inference.scorer import OnnxScorer
from stream_app.recordings.event_files import sample_sessions
from stream_app.settings import Settings
from tests.fakes import START

WARM = "I'm so sorry, that must have been terrible. What happened?"


@pytest.fixture(scope="module")
def scorer() -> OnnxScorer:
    return bootstrap.scorer(Settings())


@pytest.fixture(scope="module")
def texts() -> list[str]:
    lines = [line for path in sample_sessions()[:3] for line in path.read_text("utf-8").split("\n")]
    return [turn["text"] for line in lines if line and (turn := json.loads(line)).get("seq")]


def encoded(scorer: OnnxScorer, texts: list[str], role: Role = Role.COUNSELLOR) -> list[WindowTurn]:
    return [
        WindowTurn(
            seq=seq,
            role=role,
            occurred_at=START + timedelta(seconds=seq),
            digest=seq,
            words=1,
            vectors=encoding.vectors,
            rationales=encoding.rationales,
            truncated=encoding.truncated,
            tokens=encoding.tokens,
            parts=encoding.parts,
        )
        for seq, encoding in enumerate(scorer.encode(texts))
    ]


def requests(turns: list[WindowTurn]) -> list[ScoringRequest]:
    return [
        ScoringRequest(
            turn, Stage.PROVISIONAL, [Neighbour(other, -1 - i) for i, other in enumerate(before)]
        )
        for n, turn in enumerate(turns)
        for before in [turns[max(0, n - 3) : n][::-1]]
    ]


def numbers(scores: HeadScores) -> list[float]:
    levels = [scores.expressed.levels[name] for name in MECHANISMS]
    strategy = scores.expressed.distribution("strategy") or {}
    return [p for level in levels for p in level.probabilities] + list(strategy.values())


def test_a_score_does_not_depend_on_the_other_requests(
    scorer: OnnxScorer, texts: list[str]
) -> None:
    together = scorer.score(requests(encoded(scorer, texts)))
    alone = [encoded(scorer, [text])[0] for text in texts]
    one_by_one = [scorer.score([request])[0] for request in requests(alone)]
    assert len(texts) > 80
    for one, other in zip(together, one_by_one, strict=True):
        np.testing.assert_allclose(numbers(one), numbers(other), atol=1e-4)
        for name in MECHANISMS:
            assert one.expressed.levels[name].level == other.expressed.levels[name].level
            assert one.expressed.levels[name].rationale == other.expressed.levels[name].rationale


def test_probabilities_sum_to_one_and_levels_are_decided_from_them(
    scorer: OnnxScorer, texts: list[str]
) -> None:
    offsets = {head.name: head.offsets for head in scorer.bundle.manifest.heads}
    for scores in scorer.score(requests(encoded(scorer, texts[:20]))):
        for name in MECHANISMS:
            level = scores.expressed.levels[name]
            assert sum(level.probabilities) == pytest.approx(1.0, abs=2e-4)  # each is rounded
            assert level.level == choose_labels(level.probabilities, offsets[name])
        assert scores.expressed.total == sum(
            scores.expressed.levels[name].level for name in MECHANISMS
        )


def test_a_warm_answer_gets_a_level_and_a_rationale(scorer: OnnxScorer) -> None:
    [client] = encoded(scorer, ["I was attacked on my way home."], Role.CLIENT)
    [answer] = encoded(scorer, [WARM])
    [scores] = scorer.score([ScoringRequest(answer, Stage.PROVISIONAL, [Neighbour(client, -1)])])
    reaction, exploration = (
        scores.expressed.level(name) for name in ("emotional_reactions", "explorations")
    )
    assert reaction is not None
    assert exploration is not None
    assert reaction.level > 0
    assert exploration.level > 0
    assert any("sorry" in WARM[start:end] for start, end in reaction.rationale)
    assert any("happened" in WARM[start:end] for start, end in exploration.rationale)


def test_the_context_matters(scorer: OnnxScorer) -> None:
    [answer] = encoded(scorer, ["That must have been hard."])
    near, far = (
        encoded(scorer, [text], Role.CLIENT)[0]
        for text in ("My father died last week.", "Can you tell me your opening hours?")
    )
    one, other = scorer.score(
        [ScoringRequest(answer, Stage.PROVISIONAL, [Neighbour(turn, -1)]) for turn in (near, far)]
    )
    assert numbers(one) != pytest.approx(numbers(other), abs=1e-3)


def test_client_turns_get_client_heads_only(scorer: OnnxScorer) -> None:
    [turn] = encoded(scorer, ["I want to stop drinking."], Role.CLIENT)
    [scores] = scorer.score([ScoringRequest(turn, Stage.PROVISIONAL, [])])
    assert "strategy" not in scores.expressed
    assert scores.client["talk_type"].keys() == {"change", "neutral", "sustain"}


def test_only_a_text_longer_than_an_event_is_marked_as_truncated(scorer: OnnxScorer) -> None:
    [long] = scorer.encode(["word " * 600])
    [endless] = scorer.encode(["x" * 70_000])
    [short] = scorer.encode(["word"])
    assert (long.truncated, endless.truncated, short.truncated) == (False, True, False)


def test_unusual_texts_give_finite_vectors(scorer: OnnxScorer) -> None:
    odd = [
        "🙂",
        "…",
        "\u200b",
        "مرحبا كيف حالك",
        "e\u0301" * 50,
        "\x07",
        "<script>alert(1)</script>",
    ]
    for encoding in scorer.encode(odd):
        assert np.isfinite(np.frombuffer(encoding.vectors, np.float16)).all()


def test_markup_and_odd_characters_change_no_vector_and_rationales_mark_the_original(
    scorer: OnnxScorer,
) -> None:
    sent = "<p>I&rsquo;m so <b>sor\u00adry</b> to hear that.</p>\n\nSent from my iPhone"
    said, copy = scorer.encode(["I'm so sorry to hear that.", sent], [Role.COUNSELLOR] * 2)
    assert (said.vectors, said.tokens) == (copy.vectors, copy.tokens)
    [(start, end)] = copy.rationales["emotional_reactions"]
    assert sent[start:end] == "I&rsquo;m so <b>sor\u00adry</b> to hear that."


def test_scoring_no_requests_gives_no_scores(scorer: OnnxScorer) -> None:
    assert scorer.encode([]) == []
    assert scorer.score([]) == []


def test_requesting_cuda_without_cuda_fails_with_instructions() -> None:
    with pytest.raises(ProviderError, match="gpu"):
        OnnxScorer(load(), Provider.CUDA)


def test_the_provider_in_use_is_read_from_the_session(scorer: OnnxScorer) -> None:
    assert scorer.provider is Provider.CPU


def test_rationales_are_computed_only_for_heads_of_the_role(scorer: OnnxScorer) -> None:
    client, counsellor = scorer.encode([WARM, WARM], [Role.CLIENT, Role.COUNSELLOR])
    [of_anybody] = scorer.encode([WARM])
    assert client.rationales == {}
    assert counsellor.rationales == of_anybody.rationales
    assert counsellor.rationales["emotional_reactions"]


def test_mechanisms_without_words_have_no_rationale(scorer: OnnxScorer) -> None:
    encoded_turns = scorer.encode([WARM, "Yes.", "I am sorry."], [Role.COUNSELLOR] * 3)
    found = [turn.rationales for turn in encoded_turns]
    assert all(spans for of_turn in found for spans in of_turn.values())
    assert found[1] == {}


def test_client_turns_have_the_values_of_the_probes(scorer: OnnxScorer) -> None:
    turns = encoded(scorer, ["I want to kill myself.", "Is there a train at seven?"], Role.CLIENT)
    grave, plain = scorer.score([ScoringRequest(turn, Stage.PROVISIONAL, []) for turn in turns])
    for name in ("distress", "crisis_language"):
        assert grave.client[name]["yes"] > plain.client[name]["yes"]
        assert sum(grave.client[name].values()) == pytest.approx(1.0)
    assert plain.client["crisis_language"]["yes"] < 0.5
