"""Windows, chunks and targets of a training step."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")

from models.data.corpora import Conversation, Turn, one_hot  # noqa: E402
from models.labels import CLIENT, COUNSELLOR  # noqa: E402
from models.model.batches import (  # noqa: E402
    ALONE,
    FINAL,
    OFFSETS,
    PROVISIONAL,
    Segment,
    Step,
    Window,
    collate,
    encoder_chunks,
    epoch_steps,
    overlaps,
    tokenise,
)
from models.model.encoder import MAX_TOKENS  # noqa: E402
from tests.models.tiny import tiny_tokenizer  # noqa: E402


def chat(turns: int) -> Conversation:
    """Alternating client and counsellor turns, with labelled counsellor turns:  c0 S1 c2 S3 ..."""
    made = []
    for number in range(turns):
        role = COUNSELLOR if number % 2 else CLIENT
        labels = {"strategy": one_hot("strategy", "question")} if role == COUNSELLOR else {}
        made.append(Turn(role, "you " * (number + 1), labels))
    return Conversation("esconv", "chat", made)


def step_of(turns: int, window: Window) -> Step:
    return collate(tokenise([chat(turns)], tiny_tokenizer()), window, random.Random(0))


def seen(step: Step, row: int) -> dict[int, int]:
    """Position of the turn at each offset of a target's window."""
    targets = step.targets
    return {
        offset: int(targets.context[row, slot])
        for slot, offset in enumerate(OFFSETS)
        if targets.context_mask[row, slot]
    }


def test_a_final_window_includes_both_sides() -> None:
    """c0 S1 c2 [S3] c4 S5 c6 S7: three before, three after."""
    step = step_of(8, FINAL)
    assert step.targets.turn.tolist() == [1, 3, 5, 7]
    assert seen(step, 1) == {-3: 0, -2: 1, -1: 2, 1: 4, 2: 5, 3: 6}


def test_windows_stop_at_the_ends_of_the_conversation() -> None:
    """c0 [S1] c2 ... and ... c6 [S7]."""
    step = step_of(8, FINAL)
    assert seen(step, 0) == {-1: 0, 1: 2, 2: 3, 3: 4}
    assert seen(step, 3) == {-3: 4, -2: 5, -1: 6}


def test_a_provisional_window_includes_preceding_turns() -> None:
    assert seen(step_of(8, PROVISIONAL), 2) == {-3: 2, -2: 3, -1: 4}


def test_a_turn_alone_has_no_context() -> None:
    assert int(step_of(8, ALONE).targets.context_mask.sum()) == 0


def test_context_keeps_roles_and_distances() -> None:
    targets = step_of(8, FINAL).targets
    assert targets.context_distance[1].tolist() == [-3, -2, -1, 1, 2, 3]
    assert targets.context_role[1].tolist() == [0, 1, 0, 0, 1, 0]


def test_windows_never_cross_into_another_conversation() -> None:
    segments = tokenise([chat(4), chat(4)], tiny_tokenizer())
    step = collate(segments, FINAL, random.Random(0))
    assert step.targets.turn.tolist() == [1, 3, 5, 7]
    assert seen(step, 2) == {-1: 4, 1: 6, 2: 7}


def test_a_long_conversation_is_split_without_losing_context() -> None:
    conversation = chat(100)
    segments = tokenise([conversation], tiny_tokenizer())
    assert len(segments) == 3
    step = collate(segments, FINAL, random.Random(0))
    assert len(step.targets.turn) == 50
    whole = [len(seen(step, row)) for row in range(50)]
    assert whole == [4, *[6] * 47, 5, 3]


def test_about_half_of_the_training_windows_include_following_turns() -> None:
    segments = tokenise([chat(100)], tiny_tokenizer())
    step = collate(segments, Window(after=0.5), random.Random(0))
    following = step.targets.context_mask[:, 3].float().mean().item()
    assert 0.25 < following < 0.75


def test_chunks_contain_every_turn_once_within_the_token_budget() -> None:
    (segment,) = tokenise([chat(20)], tiny_tokenizer())
    chunks = encoder_chunks(segment.turns, chunk_tokens=64)
    positions = torch.cat([chunk.turns for chunk in chunks]).tolist()
    assert sorted(positions) == list(range(20))
    for chunk in chunks:
        assert chunk.input_ids.numel() <= 64
        for row, position in enumerate(chunk.turns.tolist()):
            ids = segment.turns[position].ids
            assert chunk.input_ids[row, : len(ids)].tolist() == ids
            assert int(chunk.attention_mask[row].sum()) == len(ids)


def test_long_turns_are_truncated_and_the_tokenizer_is_unchanged() -> None:
    tokenizer = tiny_tokenizer()
    long = Conversation("esconv", "long", [Turn(CLIENT, "you " * 500)])
    (segment,) = tokenise([long], tokenizer)
    assert len(segment.turns[0].ids) == MAX_TOKENS
    assert tokenizer.truncation is None
    assert tokenizer.padding is None


def test_rationale_spans_become_token_masks() -> None:
    text = "you feel sad . why ?"
    response = Turn(COUNSELLOR, text, rationales={"explorations": [(15, 20)]})
    (segment,) = tokenise([Conversation("epitome", "p", [response])], tiny_tokenizer())
    (chunk,) = encoder_chunks(segment.turns, 64)
    assert chunk.rationale[0, :, 2].tolist() == [0, 0, 0, 0, 0, 1, 1, 0]
    assert chunk.rationale_mask[0].sum(0).tolist() == [0, 0, 8]


def test_empty_tokens_overlap_nothing() -> None:
    assert not overlaps((0, 0), [(0, 5)])
    assert overlaps((4, 6), [(0, 5)])
    assert not overlaps((5, 6), [(0, 5)])


def test_an_epoch_repeats_each_corpus_as_configured() -> None:
    segments = [Segment(corpus, [], range(0)) for corpus in ["epitome"] * 32 + ["esconv"] * 7]
    steps = epoch_steps(segments, {"epitome": 2, "esconv": 1}, 16, random.Random(0))
    assert len(steps) == 4
    drawn = [id(segment) for step in steps for segment in step]
    assert len(drawn) == 2 * 32 + 7
    assert all(drawn.count(id(s)) == (2 if s.corpus == "epitome" else 1) for s in segments)
    assert all(sum(s.corpus == "epitome" for s in step) == 16 for step in steps)


def test_all_tensors_of_a_step_move_to_the_device() -> None:
    turns = [Turn(0, "why"), Turn(1, "because", {"reflection": (1.0, 0.0, 0.0)})]
    segments = tokenise([Conversation("annomi", "a", turns)], tiny_tokenizer())
    moved = collate(segments, FINAL, random.Random(0)).to(torch.device("meta"))
    tensors = [value for chunk in moved.chunks for value in vars(chunk).values()]
    tensors += [*vars(moved.targets).values(), *moved.targets.labels["reflection"]]
    found = [value for value in tensors if isinstance(value, torch.Tensor)]
    assert len(found) > 10
    assert all(value.is_meta for value in found)


def test_only_contrast_trains_the_turns_of_context() -> None:
    turns = [Turn(0, "why"), Turn(1, "because", {"reflection": (1.0, 0.0, 0.0)})]
    for corpus, count in (("annomi", 1), ("contrast", 0)):
        segments = tokenise([Conversation(corpus, "a", turns)], tiny_tokenizer())
        chunks = collate(segments, FINAL, random.Random(0)).chunks
        assert sum(len(chunk.turns) for chunk in chunks if chunk.context_only) == count
