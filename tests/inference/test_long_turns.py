"""A turn longer than the model reads is read in parts: what is said at its end counts."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app import bootstrap
from stream_app.contracts.events import Role
from stream_app.contracts.scores import Stage
from stream_app.core.measures.window import Neighbour, ScoringRequest, WindowState, WindowTurn
from stream_app.core.session.ports import HeadScores
from stream_app.core.session.session_state import SessionState, Versioned
from stream_app.inference import parts, tokenizer
from stream_app.inference.scorer import OnnxScorer
from stream_app.settings import Settings
from stream_app.store.stream import windows
from tests.fakes import START

CLIENT = "My father died three weeks ago and I can't stop crying."
CALM = "We went to the market on Saturday and bought apples, bread and a little cheese. "
LONG = CALM * 25
WARM = "I'm so sorry, it must be terrible to lose your father."
COMFORT = (
    "I'm so sorry for your loss. Losing a father is very hard, and it makes sense that you cry. "
) * 12
LAPSE = (
    "Stop whining, you are wasting my time, everybody's father dies and nobody cares. Honestly, "
    "get over it. Other people have real problems, and I am tired of hearing about yours. You "
    "should have visited him more often, it is your own fault."
)
DARK = "I have the pills here and tonight I will swallow them all, I don't want to be alive."


@pytest.fixture(scope="module")
def scorer() -> OnnxScorer:
    return bootstrap.scorer(Settings())


def turn(scorer: OnnxScorer, text: str, role: Role, seq: int = 0) -> WindowTurn:
    [found] = scorer.encode([text], [role])
    return WindowTurn(
        seq,
        role,
        START + timedelta(seconds=seq),
        seq,
        1,
        vectors=found.vectors,
        rationales=found.rationales,
        truncated=found.truncated,
        tokens=found.tokens,
        parts=found.parts,
    )


def answers(scorer: OnnxScorer, texts: Sequence[str]) -> list[HeadScores]:
    asked = Neighbour(turn(scorer, CLIENT, Role.CLIENT), -1)
    made = [turn(scorer, text, Role.COUNSELLOR, 1) for text in texts]
    return scorer.score([ScoringRequest(each, Stage.FINAL, [asked]) for each in made])


def said(scorer: OnnxScorer, texts: Sequence[str]) -> list[dict[str, dict[str, float]]]:
    made = [turn(scorer, text, Role.CLIENT) for text in texts]
    return [each.client for each in scorer.score([_alone(one) for one in made])]


def _alone(one: WindowTurn) -> ScoringRequest:
    return ScoringRequest(one, Stage.PROVISIONAL, [])


def _yes(scores: HeadScores, head: str) -> float:
    return (scores.expressed.distribution(head) or {})["yes"]


def test_a_lapse_at_the_end_counts(scorer: OnnxScorer) -> None:
    without, late = answers(scorer, [COMFORT, COMFORT + LAPSE])
    assert _yes(late, "lapse") > _yes(without, "lapse") + 0.2


def test_warmth_at_the_end_is_found_and_marked_in_the_original(scorer: OnnxScorer) -> None:
    text = f"<b>{LONG}</b>\n\n{WARM}"
    [plain, late] = answers(scorer, [LONG, text])
    before, found = (each.expressed.level("emotional_reactions") for each in (plain, late))
    assert before is not None
    assert found is not None
    assert found.level > before.level
    assert any("so sorry" in text[start:end] for start, end in found.rationale)
    assert found.rationale == sorted(found.rationale)


def test_a_crisis_or_distress_at_the_end_is_read(scorer: OnnxScorer) -> None:
    without, late = said(scorer, [LONG, LONG + DARK])
    for head in ("crisis_language", "distress"):
        assert late[head]["yes"] > without[head]["yes"] + 0.2
        assert sum(late[head].values()) == pytest.approx(1.0)


def test_a_turn_in_parts_has_the_same_scores_beside_other_turns(scorer: OnnxScorer) -> None:
    texts = [WARM, LONG + LAPSE, "Mm.", LONG[: len(LONG) // 2]]
    together = answers(scorer, texts)
    assert together == [answers(scorer, [text])[0] for text in texts]


def test_a_short_turn_is_read_as_before(scorer: OnnxScorer) -> None:
    assert scorer.reader is not None
    texts = [WARM, "", "x", CALM * 9]
    for text, whole in zip(texts, scorer.tokenizer.whole(texts), strict=True):
        [tokens] = scorer.tokenizer.tokenize([text])
        [part] = whole.parts
        assert (part.ids, part.offsets, whole.truncated) == (tokens.ids, tokens.offsets, False)
    assert scorer.encode([WARM])[0].parts == b""
    assert len(scorer.reader.inputs_of(_alone(turn(scorer, WARM, Role.CLIENT)))) == 1


def test_context_sees_the_mean_of_the_parts(scorer: OnnxScorer) -> None:
    long = turn(scorer, LONG + DARK, Role.CLIENT)
    each = np.frombuffer(long.parts, np.float16).reshape(-1, 2, 384)
    mean = np.frombuffer(long.vectors, np.float16).reshape(2, 384)
    assert len(each) > 2
    np.testing.assert_allclose(mean, each.mean(axis=0, dtype=np.float64), atol=1e-2)


def test_a_stored_window_keeps_the_parts(scorer: OnnxScorer) -> None:
    long = turn(scorer, LONG, Role.COUNSELLOR)
    window = WindowState(history=[long], next_seq=long.seq + 1)
    split = windows.split_state(Versioned(SessionState("s", "bundle", window=window)))
    rows = {row["slot"]: row["turn"] for row in split.turns}
    assert windows.join_state(split.state, rows)[0].window.history == [long]


@given(st.integers(0, 30_000), st.sampled_from([12, 96, 190]))
def test_parts_leave_no_token_out_and_none_is_too_long(count: int, most: int) -> None:
    found = parts.spans(count, most)
    assert (found[0][0], found[-1][1]) == (0, count)
    assert all(end - start <= most for start, end in found)
    assert len({end - start for start, end in found}) == 1
    for (_, end), (start, _) in pairwise(found):
        assert end - start >= most // parts.OVERLAP
    assert len(found) <= 1 + count // (most - most // parts.OVERLAP)


def test_the_longest_text_has_a_bounded_number_of_parts(
    scorer: OnnxScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenizer, "MAX_PARTS", 3)
    fits, longer = scorer.tokenizer.whole(["! " * 300, "! " * 900])
    assert (fits.truncated, longer.truncated) == (False, True)
    assert len(longer.words) == 3 * 190
    assert longer.parts[-1].truncated
