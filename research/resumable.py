"""A training loop that continues after an interruption exactly where its checkpoint was saved.

Batches come in the same order in every run, and each step seeds its own dropout, so that an
interrupted and continued training gives the same weights as an uninterrupted one.
"""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from models.fit.optimisation import Optimisation

EVERY = 20
"""Steps between two lines of the log, and between two checkpoints."""

FOLDER = Path("build/methods/checkpoints")

Batch = TypeVar("Batch")


def checkpoint_of(*setting: object, folder: Path = FOLDER) -> Path:
    """The checkpoint file of a training; another setting has another file."""
    digest = hashlib.sha256(repr(setting).encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{digest}.pt"


def optimise(
    optimisation: Optimisation,
    batches: Callable[[int], Iterable[Batch]],
    loss_of: Callable[[Batch], Tensor],
    seed: int,
    checkpoint: Path | None = None,
) -> None:
    """Run the planned steps, from the checkpoint if there is one, which is deleted at the end.

    `batches` gives those of an epoch (0, 1, ...), always in the same order.
    """
    optimisation.resume(checkpoint)
    started, recent = time.monotonic(), []
    plan = itertools.chain.from_iterable(map(batches, itertools.count()))
    for batch in itertools.islice(plan, optimisation.done, optimisation.steps):
        torch.manual_seed(seed * 1_000_003 + optimisation.done)
        loss = loss_of(batch)
        optimisation.step(loss)
        recent.append(loss.item())
        if optimisation.done % EVERY and not optimisation.finished:
            continue
        value = sum(recent[-EVERY:]) / len(recent[-EVERY:])
        minutes = (time.monotonic() - started) / 60
        print(
            f"step {optimisation.done}/{optimisation.steps} loss {value:.3f} minutes {minutes:.1f}",
            flush=True,
        )
        if checkpoint is not None:
            optimisation.save(checkpoint)
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
