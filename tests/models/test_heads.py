"""The context head: empty contexts, masks, distances and 16-bit vectors."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from models.labels import HEADS, RATIONALE_ORDER  # noqa: E402
from models.model.heads import ALONE, MAX_DISTANCE, ContextHead, through_half  # noqa: E402

HIDDEN, SLOTS = 48, 6


@pytest.fixture
def head() -> ContextHead:
    torch.manual_seed(1)
    return ContextHead(HIDDEN).eval()


def windows(count: int = 4, **changes: torch.Tensor) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    inputs = {
        "target": torch.randn(count, 2, HIDDEN, generator=generator),
        "target_role": torch.ones(count, dtype=torch.long),
        "context": torch.randn(count, SLOTS, HIDDEN, generator=generator),
        "context_role": torch.zeros(count, SLOTS, dtype=torch.long),
        "context_distance": torch.tensor([-3, -2, -1, 1, 2, 3]).repeat(count, 1),
        "context_mask": torch.ones(count, SLOTS, dtype=torch.long),
    }
    return inputs | changes


def test_each_head_has_one_logit_per_label(head: ContextHead) -> None:
    shapes = [tuple(logits.shape) for logits in head(**windows(5))]
    assert shapes == [(5, len(spec.labels)) for spec in HEADS]


def test_an_empty_context_is_finite_and_adds_nothing(head: ContextHead) -> None:
    inputs = windows(context_mask=torch.zeros(4, SLOTS, dtype=torch.long))
    with torch.no_grad():
        fused = head.fuse(**inputs)
        alone = head.norm(inputs["target"]).flatten(1)
    assert torch.isfinite(fused).all()
    assert torch.equal(fused[:, : alone.shape[1]], alone)
    assert not fused[:, alone.shape[1] :].any()


def test_the_product_uses_the_attended_context(head: ContextHead) -> None:
    """With one neighbour it is the product of the two mean vectors, normalised."""
    inputs = windows(context_mask=torch.tensor([0, 0, 1, 0, 0, 0]).repeat(4, 1))
    with torch.no_grad():
        product = head.fuse(**inputs)[:, -inputs["target"].shape[-1] :]
        wanted = head.match(inputs["target"][:, 1] * inputs["context"][:, 2])
    torch.testing.assert_close(product, wanted, atol=1e-4, rtol=1e-3)


def test_masked_slots_do_not_matter(head: ContextHead) -> None:
    mask = torch.tensor([1, 1, 1, 0, 0, 0]).repeat(4, 1)
    inputs = windows(context_mask=mask)
    other = inputs | {"context": torch.where(mask.bool().unsqueeze(-1), inputs["context"], 7.0)}
    with torch.no_grad():
        for first, second in zip(head(**inputs), head(**other), strict=True):
            torch.testing.assert_close(first, second)


def test_absent_slots_may_be_omitted(head: ContextHead) -> None:
    """Three slots score like six of which three are masked."""
    mask = torch.tensor([1, 1, 1, 0, 0, 0]).repeat(4, 1)
    six = windows(context_mask=mask)
    three = {key: x[:, :3] if key.startswith("context") else x for key, x in six.items()}
    with torch.no_grad():
        for first, second in zip(head(**six), head(**three), strict=True):
            torch.testing.assert_close(first, second)


def test_context_role_and_distance_change_the_scores(head: ContextHead) -> None:
    with torch.no_grad():
        plain = head.fuse(**windows())
        roles = head.fuse(**windows(context_role=torch.ones(4, SLOTS, dtype=torch.long)))
        near = head.fuse(**windows(context_distance=torch.full((4, SLOTS), -1)))
    assert not torch.allclose(plain, roles)
    assert not torch.allclose(plain, near)


def test_distances_beyond_the_table_are_clipped(head: ContextHead) -> None:
    with torch.no_grad():
        edge = head.fuse(**windows(context_distance=torch.full((4, SLOTS), MAX_DISTANCE)))
        far = head.fuse(**windows(context_distance=torch.full((4, SLOTS), 40)))
    assert torch.equal(edge, far)


def test_sixteen_bit_vectors_hardly_move_the_scores(head: ContextHead) -> None:
    inputs = windows()
    kept = inputs | {key: inputs[key].half().float() for key in ("target", "context")}
    with torch.no_grad():
        for first, second in zip(head(**inputs), head(**kept), strict=True):
            torch.testing.assert_close(first, second, atol=2e-3, rtol=0)


def test_half_precision_rounds_like_the_service_and_passes_gradients() -> None:
    vectors = torch.randn(3, HIDDEN, requires_grad=True)
    kept = through_half(vectors)
    torch.testing.assert_close(kept, vectors.detach().half().float(), atol=1e-7, rtol=0)
    (kept * 1e-6).sum().backward()
    assert torch.equal(vectors.grad, torch.full_like(vectors, 1e-6))


def test_head_names_are_unique_and_rationale_heads_have_levels() -> None:
    assert len({spec.name for spec in HEADS}) == len(HEADS)
    by_kind = [spec.name for spec in HEADS if spec.kind == "level"]
    assert by_kind == list(RATIONALE_ORDER)
    assert [spec.rationale_index for spec in HEADS[:3]] == [0, 1, 2]


def test_a_level_combines_words_and_context(head: ContextHead) -> None:
    inputs = windows()
    empty = windows(context_mask=torch.zeros(4, SLOTS, dtype=torch.long))
    with torch.no_grad():
        in_context = head.in_context(*inputs.values())
        alone = head.in_context(*empty.values())
        for spec, given, one, other in zip(HEADS, head(**inputs), in_context, alone, strict=True):
            if not spec.tempered:
                assert torch.equal(given, one)
                continue
            p, seen, words = given.softmax(-1), one.softmax(-1), other.softmax(-1)
            product = seen ** (1 - ALONE) * words**ALONE
            product /= product.sum(-1, keepdim=True)
            none = torch.maximum(seen[:, 0], product[:, 0])
            torch.testing.assert_close(p[:, 0], none)
            torch.testing.assert_close(p[:, 1] / p[:, 2], product[:, 1] / product[:, 2])


def test_in_training_every_head_uses_the_window(head: ContextHead) -> None:
    head.train()
    for part in head.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    inputs = windows()
    for given, one in zip(head(**inputs), head.in_context(*inputs.values()), strict=True):
        assert torch.equal(given, one)
