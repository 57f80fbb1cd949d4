"""Domain-adaptive pre-training: steps, masked tokens and the loss."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from models.model.encoder import load_backbone, load_tokenizer  # noqa: E402
from research.recipe import masked_language  # noqa: E402

TEXTS = ["I am so sorry.", "Why do you think that?", "work", "That must be really hard for you now"]


def test_every_text_is_used_once_in_steps_within_the_limit() -> None:
    found = [[101, *[7] * size, 102] for size in range(40)] * 2
    steps = masked_language.steps(found, 64, "seed")
    assert sorted(ids for step in steps for ids in step) == sorted(found)
    assert all(len(step) * max(map(len, step)) <= 64 for step in steps)
    assert steps == masked_language.steps(found, 64, "seed")
    assert steps != masked_language.steps(found, 64, "another")


def test_about_15_percent_of_the_tokens_are_masked_and_no_special_one() -> None:
    tokenizer = load_tokenizer()
    members = [{"input_ids": tokenizer.encode(TEXTS[3]).ids} for _ in range(300)]
    batch = masked_language.masking(tokenizer, 17)(members)
    hidden = batch["labels"] >= 0
    assert not hidden[:, [0, -1]].any()
    assert hidden[:, 1:-1].float().mean().item() == pytest.approx(0.15, abs=0.02)
    behind_the_mask = batch["input_ids"][hidden] == tokenizer.token_to_id("[MASK]")
    assert behind_the_mask.float().mean().item() == pytest.approx(0.8, abs=0.06)


def test_the_loss_equals_the_librarys() -> None:
    torch.manual_seed(1)
    model = masked_language.model().eval()
    tokenizer = load_tokenizer()
    batch = masked_language.masking(tokenizer, 5)(
        [{"input_ids": tokenizer.encode(text).ids} for text in TEXTS * 3]
    )
    with torch.no_grad():
        ours, theirs = masked_language.loss_of(model, **batch), model(**batch).loss
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-5)


def test_training_lowers_the_loss_and_the_encoder_takes_the_weights(tmp_path: Path) -> None:
    torch.manual_seed(2)
    model, tokenizer = masked_language.model(), load_tokenizer()
    same = [tokenizer.encode(text).ids for text in TEXTS] * 20

    def loss() -> float:
        with torch.no_grad():
            batch = masked_language.masking(tokenizer, 5)([{"input_ids": ids} for ids in same])
            return masked_language.loss_of(model, **batch).item()

    before = loss()
    masked_language.fit(
        model,
        same,
        tokenizer,
        epochs=6,
        rate=1e-3,
        tokens_a_step=400,
        seed=1,
        most_steps=12,
        bf16=False,
    )
    assert loss() < before / 2
    torch.save(model.base_model.state_dict(), tmp_path / "backbone.pt")
    adapted, plain = load_backbone(tmp_path / "backbone.pt"), load_backbone()
    name = "encoder.layer.5.output.dense.weight"
    assert torch.equal(adapted.state_dict()[name], model.base_model.state_dict()[name])
    assert not torch.equal(adapted.state_dict()[name], plain.state_dict()[name])
    words = "embeddings.word_embeddings.weight"
    assert torch.equal(adapted.state_dict()[words], plain.state_dict()[words])
