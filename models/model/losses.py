"""Classification losses for long-tailed labels (Xu & Jiang 2024, section 5.4).

Every loss takes logits [n, labels] and target distributions [n, labels] (rows sum to 1) and returns
the mean over the rows, so annotator votes can be used directly.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

LossName = Literal["cross_entropy", "weighted", "focal", "ldam", "ordinal"]


def inverse_sqrt_weights(counts: Tensor) -> Tensor:
    """Class weights proportional to 1/sqrt(count), scaled to a mean of 1 over the data.

    `counts` [labels] may be fractional; a label that never occurs counts as one item.
    """
    counts = counts.float().clamp(min=1.0)
    weights = counts.rsqrt()
    return weights * counts.sum() / (weights * counts).sum()


def cross_entropy(logits: Tensor, target: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean of -sum_k w_k t_k log p_k."""
    terms = -target * logits.log_softmax(-1)
    if weights is not None:
        terms = terms * weights
    return terms.sum(-1).mean()


def focal(logits: Tensor, target: Tensor, gamma: float = 2.0) -> Tensor:
    """Mean of -sum_k t_k (1 - p_k)^gamma log p_k (Lin et al. 2017)."""
    log_p = logits.log_softmax(-1)
    return -(target * (1 - log_p.exp()) ** gamma * log_p).sum(-1).mean()


def ldam(
    logits: Tensor,
    target: Tensor,
    counts: Tensor,
    max_margin: float = 0.5,
    scale: float = 30.0,
    weights: Tensor | None = None,
) -> Tensor:
    """Label-distribution-aware margin loss (Cao et al. 2019).

    The true class k must win by a margin proportional to count_k^(-1/4); the rarest class gets
    `max_margin`. Logits are multiplied by `scale`, so they should be of order one (cosines in the
    original). With a soft target the loss is averaged over the classes.
    """
    margins = counts.float().clamp(min=1.0).pow(-0.25)
    margins = margins * (max_margin / margins.max())
    shifted = logits.unsqueeze(-2) - torch.diag(margins)
    log_p = (scale * shifted).log_softmax(-1).diagonal(dim1=-2, dim2=-1)
    terms = -target * log_p
    if weights is not None:
        terms = terms * weights
    return terms.sum(-1).mean()


def ordinal(logits: Tensor, target: Tensor, weights: Tensor | None = None) -> Tensor:
    """Cross-entropy plus the squared earth mover's distance between ordered labels.

    The distance compares cumulative probabilities, so confusing "strong" with "none" costs more
    than confusing "weak" with "none" (Hou et al. 2017).
    """
    gaps = logits.softmax(-1).cumsum(-1) - target.cumsum(-1)
    return cross_entropy(logits, target, weights) + gaps.pow(2).sum(-1).mean()


class HeadLoss(nn.Module):
    """The chosen loss for one head, with the label counts of its training split."""

    counts: Tensor
    weights: Tensor

    def __init__(self, name: LossName, counts: Tensor) -> None:
        super().__init__()
        self.name = name
        self.register_buffer("counts", counts.float())
        self.register_buffer("weights", inverse_sqrt_weights(counts))

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Scalar loss for logits and target distributions [n, labels]."""
        match self.name:
            case "cross_entropy":
                return cross_entropy(logits, target)
            case "weighted":
                return cross_entropy(logits, target, self.weights)
            case "focal":
                return focal(logits, target)
            case "ldam":
                return ldam(logits, target, self.counts, scale=1.0)
            case "ordinal":
                return ordinal(logits, target, self.weights)


def rationale_loss(logits: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Binary cross-entropy over the unmasked tokens.

    `logits`, `target` (0 or 1) and `mask` (0 or 1) are [n, tokens, 3]; 0 for an empty mask.
    """
    terms = nn.functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
    return (terms * mask).sum() / mask.sum().clamp(min=1.0)
