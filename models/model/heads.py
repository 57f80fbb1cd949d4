"""The context head: attention over the neighbouring turns, then one small network per task.

It follows EPITOME's bi-encoder (Sharma et al. 2020, section 5.2): queries from the response, keys
and values from the context, a residual connection. Here the context is one pooled vector per turn,
so a head can be rerun when following turns arrive. Whether words fit depends on both sides, so
their elementwise product is concatenated to the fusion (Conneau et al. 2017, section 3.1).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.labels import HEADS, OUTCOME_HEADS, HeadSpec

MAX_DISTANCE = 8
FUSED = 3
"""Input vectors of the task networks: two of the turn with its context, one product."""
ALONE = 0.4
"""Weight of the context-free logits in `tempered`."""
MASKED = -1e4
"""Attention score of an absent slot: finite, so that an empty context gives no NaN."""


def through_half(vectors: Tensor) -> Tensor:
    """Round vectors to 16-bit floats; gradients pass unchanged (straight-through)."""
    return vectors + (vectors.half().float() - vectors).detach()


def tempered(in_context: Tensor, alone: Tensor) -> Tensor:
    """Logits [..., levels] in context, combined with the context-free logits.

    A product of experts (Hinton 2002) that can only lower: the probability of a level above 0 is
    the minimum of the in-context one and the product's. Contrast training makes a head
    under-confident, which costs accuracy; words that do not fit the context must still not count on
    their own.
    """
    product = (1.0 - ALONE) * in_context.log_softmax(-1) + ALONE * alone.log_softmax(-1)
    shown = product[..., 1:].logsumexp(-1)
    odds = torch.maximum(_odds_of_none(product), _odds_of_none(in_context))
    return torch.cat([(shown + odds).unsqueeze(-1), product[..., 1:]], -1)


def _task(size: int, task_size: int, head: HeadSpec) -> nn.Module:
    if head.name in OUTCOME_HEADS:
        return nn.Linear(size, len(head.labels))
    return nn.Sequential(
        nn.Dropout(0.1),
        nn.Linear(size, task_size),
        nn.GELU(),
        nn.Dropout(0.1),
        nn.Linear(task_size, len(head.labels)),
    )


def _odds_of_none(logits: Tensor) -> Tensor:
    return logits[..., 0] - logits[..., 1:].logsumexp(-1)


class ContextAttention(nn.Module):
    """Multi-head attention from the target's two vectors to the context vectors.

    The values have no bias, so an empty context adds exactly zero.
    """

    def __init__(self, hidden_size: int, attention_size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(hidden_size, attention_size)
        self.key = nn.Linear(hidden_size, attention_size)
        self.value = nn.Linear(hidden_size, attention_size)
        self.output = nn.Linear(attention_size, hidden_size, bias=False)
        self.dropout = nn.Dropout(0.1)

    def _by_head(self, x: Tensor) -> Tensor:
        parts: Tensor = x.unflatten(-1, (self.heads, -1))
        return parts.transpose(1, 2)

    def forward(self, target: Tensor, context: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The context's contribution, [batch, 2, hidden], and attention weights, [batch, 1, slots].

        The weights are averaged over heads and target vectors; zero without context. `target`
        [batch, 2, hidden], `context` [batch, slots, hidden], `mask` [batch, slots].
        """
        query = self._by_head(self.query(target))
        key = self._by_head(self.key(context))
        value = self._by_head(self.value(context))
        present = mask.to(target.dtype)[:, None, None, :]
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        scores = scores * present + (1.0 - present) * MASKED
        weights = scores.softmax(-1) * present
        found = self.dropout(weights) @ value
        seen = weights.flatten(1, 2).mean(1, keepdim=True)
        return self.output(found.transpose(1, 2).flatten(2)), seen


def heads_for(size: int) -> int:
    """The largest number of attention heads, up to six, that divides the attention size.

    >>> heads_for(192), heads_for(512)
    (6, 4)
    """
    return next(heads for heads in range(6, 0, -1) if size % heads == 0)


class ContextHead(nn.Module):
    """All classification heads over one shared fusion with the context."""

    def __init__(self, hidden_size: int, task_size: int = 96) -> None:
        super().__init__()
        attention_heads = heads_for(hidden_size // 2)
        self.role = nn.Embedding(2, hidden_size)
        self.distance = nn.Embedding(2 * MAX_DISTANCE + 1, hidden_size)
        for embedding in (self.role, self.distance):
            nn.init.normal_(embedding.weight, std=0.02)
        self.attention = ContextAttention(hidden_size, hidden_size // 2, attention_heads)
        self.match = nn.LayerNorm(hidden_size)
        self.norm = nn.LayerNorm(hidden_size)
        self.tasks = nn.ModuleDict(
            {head.name: _task(FUSED * hidden_size, task_size, head) for head in HEADS}
        )

    def fuse(
        self,
        target: Tensor,
        target_role: Tensor,
        context: Tensor,
        context_role: Tensor,
        context_distance: Tensor,
        context_mask: Tensor,
    ) -> Tensor:
        """Fuse the target with its context, [batch, FUSED * hidden]."""
        distance = context_distance.clamp(-MAX_DISTANCE, MAX_DISTANCE) + MAX_DISTANCE
        neighbours = context + self.role(context_role) + self.distance(distance)
        query = target + self.role(target_role).unsqueeze(1)
        added, seen = self.attention(query, neighbours, context_mask)
        fused = self.norm(target + added).flatten(1)
        return torch.cat([fused, self.match(target[:, 1] * (seen @ context).squeeze(1))], -1)

    def forward(
        self,
        target: Tensor,
        target_role: Tensor,
        context: Tensor,
        context_role: Tensor,
        context_distance: Tensor,
        context_mask: Tensor,
    ) -> tuple[Tensor, ...]:
        """Logits [batch, labels] of every head, in the order of `HEADS`.

        In training every head uses the window alone; in evaluation some are `tempered`.

        `target` [batch, 2, hidden]; `target_role` [batch] (0 client, 1 counsellor); `context`
        [batch, slots, hidden], the mean vectors of the neighbours; `context_role`,
        `context_distance` (turns from the target, negative before it) and `context_mask` (1 =
        present) are int64 [batch, slots].
        """
        window = (target, target_role, context, context_role, context_distance, context_mask)
        if self.training:
            return self.in_context(*window)
        return tuple(self.read(self.fuse(*window), self.alone(target)).values())

    def in_context(self, *window: Tensor) -> tuple[Tensor, ...]:
        """Logits of every head with its window, as used in training."""
        fused = self.fuse(*window)
        return tuple(self.tasks[head.name](fused) for head in HEADS)

    def alone(self, target: Tensor) -> Tensor:
        """The output of `fuse` for an empty context, [batch, FUSED * hidden]."""
        without = self.norm(target).flatten(1)
        return torch.cat([without, torch.zeros_like(target[:, 0])], -1)

    def read(self, fused: Tensor, alone: Tensor, role: int | None = None) -> dict[str, Tensor]:
        """Logits [batch, labels] of all heads, or of a role's heads.

        Both inputs [batch, FUSED * hidden].
        """
        logits = {}
        for head in HEADS:
            if role in (None, head.role):
                task = self.tasks[head.name]
                logits[head.name] = task(fused)
                if head.tempered:
                    logits[head.name] = tempered(logits[head.name], task(alone))
        return logits
