"""Which heads, which turns around the target and which loss a row has."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import get_args

from models.labels import HEADS_BY_NAME, RATED, RATIONALE_ORDER
from models.model.losses import LossName

MOST = 3
"""Turns on either side of the target, at most."""

TASKS: dict[str, tuple[str, ...]] = {
    "levels": RATIONALE_ORDER,
    "strategy": ("strategy",),
    "perceived": (RATED,),
}
"""Heads that one classifier learns together; all heads of a task are of one corpus."""

KEY = re.compile(r"(?P<task>\w+)-(?P<before>\d)-(?P<after>\d)-(?P<loss>\w+)")


@dataclass(frozen=True)
class Design:
    """One row: `before` preceding and `after` following turns are in the window of the target."""

    task: str
    before: int
    after: int
    loss: LossName

    @property
    def key(self) -> str:
        """The row's name in result files and on the command line."""
        return f"{self.task}-{self.before}-{self.after}-{self.loss}"

    @property
    def heads(self) -> tuple[str, ...]:
        """Heads that are learned."""
        return TASKS[self.task]

    @property
    def corpus(self) -> str:
        """The corpus with these heads' labels."""
        return HEADS_BY_NAME[self.heads[0]].corpus

    @property
    def context(self) -> str:
        """What of the context is read, in words."""
        if self.task == "levels":
            return "seeker post" if self.before else "none"
        sides = ((self.before, "preceding"), (self.after, "following"))
        found = [f"{count} {side}" for count, side in sides if count]
        return ", ".join(found) or "none"

    @property
    def words(self) -> str:
        """The row in words."""
        return f"window classifier, {self.loss.replace('_', '-')}"


def design_of(key: str) -> Design:
    """Read a row's name, such as `strategy-3-0-focal`.

    Raises:
        ValueError: the name has another form, or a part of it is unknown.
    """
    found = KEY.fullmatch(key)
    losses = get_args(LossName)
    if (
        found is None
        or found["task"] not in TASKS
        or found["loss"] not in losses
        or max(int(found["before"]), int(found["after"])) > MOST
    ):
        message = (
            f"no row {key}; a row is TASK-BEFORE-AFTER-LOSS with a task of {', '.join(TASKS)}, "
            f"0 to {MOST} turns before and after, and a loss of {', '.join(losses)}"
        )
        raise ValueError(message)
    loss: LossName = found["loss"]  # type: ignore[assignment]
    return Design(found["task"], int(found["before"]), int(found["after"]), loss)


PLANNED = tuple(
    design_of(key)
    for key in (
        "strategy-3-3-cross_entropy",
        "strategy-3-3-focal",
        "strategy-3-3-ldam",
        "strategy-3-0-cross_entropy",
        "strategy-0-0-cross_entropy",
        "levels-1-0-cross_entropy",
        "levels-1-0-focal",
        "levels-1-0-ldam",
        "levels-0-0-cross_entropy",
        "perceived-3-3-cross_entropy",
    )
)
"""The paper's ablations of loss and context; EPITOME's pairs have one turn before the target."""
