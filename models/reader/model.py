"""The reader's network: an encoder over client and answer, and small heads."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.reader.examples import BINARY, ENTAILMENT, MITI_CODES, SCALES

OUTPUTS: dict[str, int] = {
    "answer": 1,
    "fit": 1,
    **dict.fromkeys(BINARY, 1),
    "code": len(MITI_CODES),
    "entailed": len(ENTAILMENT),
}
"""Heads of the reader and their widths."""


class Reader(nn.Module):
    """Reads `[batch, tokens]` ids; the turn that is read begins at `start`.

    A head sees the state of the first token, the mean of the turn's states, and the mean of the
    states before it. Of a `causal` encoder, whose first token has seen nothing, it sees the last.
    """

    def __init__(
        self, backbone: nn.Module, hidden_size: int, task_size: int = 128, *, causal: bool = False
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.causal = causal
        self.norm = nn.LayerNorm(3 * hidden_size)
        self.hidden = nn.ModuleDict(
            {name: nn.Linear(3 * hidden_size, task_size) for name in OUTPUTS}
        )
        self.output = nn.ModuleDict(
            {name: nn.Linear(task_size, width) for name, width in OUTPUTS.items()}
        )
        self.dropout = nn.Dropout(0.1)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, start: Tensor) -> Tensor:
        """Logits of all heads side by side, [batch, sum of widths], in the order of `OUTPUTS`."""
        states = self.backbone(
            input_ids=input_ids, attention_mask=attention_mask
        ).last_hidden_state.float()
        place = torch.arange(states.shape[1], device=states.device)
        after = (place >= start.unsqueeze(1)).to(states.dtype) * attention_mask
        before = attention_mask.to(states.dtype) - after
        last = attention_mask.sum(1) - 1 if self.causal else torch.zeros_like(start)
        whole = states[torch.arange(len(states), device=states.device), last]
        fused = self.norm(torch.cat([whole, _mean(states, after), _mean(states, before)], -1))
        return torch.cat(
            [
                self.output[name](
                    self.dropout(functional.gelu(self.hidden[name](self.dropout(fused))))
                )
                for name in OUTPUTS
            ],
            -1,
        )


def _mean(states: Tensor, weights: Tensor) -> Tensor:
    weights = weights.unsqueeze(-1)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1.0)


def split(logits: Tensor) -> dict[str, Tensor]:
    """The reader's logits by head, each [batch, width]."""
    parts = logits.split(list(OUTPUTS.values()), -1)
    return dict(zip(OUTPUTS, parts, strict=True))


class GradedResponse(nn.Module):
    """Ordered judgements as noisy readings of one latent trait (Samejima 1969).

    A scale has a slope `a` > 0 and increasing thresholds `b`:
    P(level >= k | z) = sigmoid(a * (z - b_k)).
    """

    def __init__(self) -> None:
        super().__init__()
        self.names = list(SCALES)
        self.slope = nn.Parameter(torch.zeros(len(SCALES)))
        self.first = nn.Parameter(torch.zeros(len(SCALES)))
        self.gaps = nn.ParameterDict(
            {name: nn.Parameter(torch.zeros(max(1, levels - 2))) for name, levels in SCALES.items()}
        )

    def thresholds(self, name: str) -> Tensor:
        """The increasing thresholds of a scale, [levels - 1]."""
        levels = SCALES[name]
        steps = functional.softplus(self.gaps[name])[: levels - 2]
        first = self.first[self.names.index(name)].reshape(1)
        centred = torch.cat([first.new_zeros(1), steps.cumsum(0)]) if levels > 2 else first * 0
        return first + centred - centred.mean()

    def forward(self, name: str, latent: Tensor, level: Tensor) -> Tensor:
        """Mean negative log-likelihood of levels [n] given the latent trait [n]."""
        slope = functional.softplus(self.slope[self.names.index(name)] + 0.54)
        at_least = torch.sigmoid(slope * (latent.unsqueeze(1) - self.thresholds(name)))
        ones, zeros = latent.new_ones(len(latent), 1), latent.new_zeros(len(latent), 1)
        cumulative = torch.cat([ones, at_least, zeros], 1)
        share = (cumulative[:, :-1] - cumulative[:, 1:]).clamp(min=1e-6)
        return -share.log().gather(1, level.unsqueeze(1)).mean()
