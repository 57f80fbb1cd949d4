"""An interrupted training continues to the weights of an uninterrupted one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from models.fit.optimisation import Optimisation  # noqa: E402
from research.resumable import EVERY, checkpoint_of, optimise  # noqa: E402

STEPS = 3 * EVERY - 5
LONGER = 7
"""Steps of an epoch: an interruption is within one."""


class SwitchedOffError(Exception):
    """Stands for a machine that is switched off."""


def weights(checkpoint: Path | None, stop: int | None = None) -> torch.Tensor:
    """Train with dropout; after `stop` losses the training is interrupted."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
    optimisation = Optimisation(model, torch.optim.AdamW(model.parameters(), lr=0.01), STEPS, 0.1)
    computed = 0

    def batches(epoch: int) -> Iterator[torch.Tensor]:
        chance = torch.Generator().manual_seed(epoch)
        for _ in range(LONGER):
            yield torch.randn(6, 4, generator=chance)

    def loss(batch: torch.Tensor) -> torch.Tensor:
        nonlocal computed
        if computed == stop:
            raise SwitchedOffError
        computed += 1
        return model(batch).square().mean()

    optimise(optimisation, batches, loss, 17, checkpoint)
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@pytest.mark.parametrize("stop", [3, EVERY, EVERY + 9, 2 * EVERY + 1])
def test_a_continued_training_gives_the_same_weights(tmp_path: Path, stop: int) -> None:
    checkpoint = checkpoint_of("row", folder=tmp_path)
    with pytest.raises(SwitchedOffError):
        weights(checkpoint, stop)
    assert checkpoint.is_file() == (stop >= EVERY)
    assert torch.equal(weights(checkpoint), weights(None))
    assert not checkpoint.exists(), "a finished training leaves no checkpoint"


def test_another_setting_has_another_checkpoint(tmp_path: Path) -> None:
    one, other = (checkpoint_of("row", epochs, folder=tmp_path) for epochs in (2, 3))
    assert one != other
    assert one == checkpoint_of("row", 2, folder=tmp_path)
