"""The skeleton of every training: optimiser, schedule, one step, and checkpoints to resume from."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from models.model.multitask import MultitaskModel

LONGEST_GRADIENT = 1.0
"""Gradients are clipped to this norm."""


class Rates(Protocol):
    """The part of a recipe that concerns the optimiser."""

    encoder_rate: float
    head_rate: float
    weight_decay: float


class Stateful(Protocol):
    """An object whose state goes into checkpoints."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any], /) -> object: ...


class Optimisation:
    """A model in training; ``done`` counts its optimiser steps, of ``steps`` planned ones."""

    def __init__(
        self, model: nn.Module, optimiser: torch.optim.Optimizer, steps: int, warm_up: float
    ) -> None:
        self.steps = steps
        self.done = 0
        self._model = model
        self._optimiser = optimiser
        self._schedule = schedule_for(optimiser, steps, warm_up)

    @property
    def finished(self) -> bool:
        """Whether all planned steps are done."""
        return self.done >= self.steps

    def step(self, loss: Tensor) -> None:
        """Change the weights along the clipped gradients of this loss."""
        loss.backward()
        nn.utils.clip_grad_norm_(self._model.parameters(), LONGEST_GRADIENT)
        self._optimiser.step()
        self._schedule.step()
        self._optimiser.zero_grad(set_to_none=True)
        self.done += 1

    def save(self, checkpoint: Path) -> None:
        """Write a checkpoint; an interruption leaves the earlier one as it is."""
        states = {name: part.state_dict() for name, part in self._parts().items()}
        unfinished = checkpoint.with_suffix(".unfinished")
        torch.save({**states, "steps": self.done}, unfinished)
        unfinished.replace(checkpoint)

    def resume(self, checkpoint: Path | None) -> None:
        """Continue from a checkpoint, if there is one."""
        if checkpoint is None or not checkpoint.is_file():
            return
        state = torch.load(checkpoint, map_location="cpu", weights_only=True)
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        self.done = int(state["steps"])
        print(f"resumed after {self.done} of {self.steps} steps", flush=True)

    def _parts(self) -> dict[str, Stateful]:
        return {"model": self._model, "optimiser": self._optimiser, "schedule": self._schedule}


def optimiser_for(model: MultitaskModel, rates: Rates) -> torch.optim.AdamW:
    """AdamW with two rates; biases and normalisation scales do not decay."""
    groups = []
    rationale = nn.ModuleList(
        [child for name, child in model.encoder.named_children() if name != "backbone"]
    )
    for module, rate in (
        (model.encoder.backbone, rates.encoder_rate),
        (rationale, rates.head_rate),
        (model.head, rates.head_rate),
    ):
        trained = [p for p in module.parameters() if p.requires_grad]
        matrices = [p for p in trained if p.ndim > 1]
        vectors = [p for p in trained if p.ndim <= 1]
        groups.append({"params": matrices, "lr": rate, "weight_decay": rates.weight_decay})
        groups.append({"params": vectors, "lr": rate, "weight_decay": 0.0})
    return torch.optim.AdamW(groups)


def schedule_for(
    optimiser: torch.optim.Optimizer, steps: int, warm_up: float
) -> torch.optim.lr_scheduler.LambdaLR:
    """Linear warm-up over a share of the steps, then linear decay to zero."""
    warm = max(1, math.ceil(steps * warm_up))

    def factor(step: int) -> float:
        return (step + 1) / warm if step < warm else max(0.0, (steps - step) / (steps - warm + 1))

    return torch.optim.lr_scheduler.LambdaLR(optimiser, factor)
