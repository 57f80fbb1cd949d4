"""Decides whether an error may be caused by an event (a poison pill) or by the environment."""

import traceback
from pathlib import Path
from typing import Final

from stream_app.errors import ContractError, RapportError, RowRefused

UNPROCESSABLE: Final = "unprocessable"


def may_be_poison(problem: BaseException) -> bool:
    """Whether an event may have caused this error; false for memory, disk, network, database."""
    if isinstance(problem, RapportError):
        return isinstance(problem, RowRefused)
    return isinstance(problem, Exception) and not isinstance(problem, MemoryError | OSError)


def as_contract_error(problem: BaseException) -> ContractError:
    """The dead letter's reason for this error; omits its message, which may quote text."""
    place = ""
    if frames := traceback.extract_tb(problem.__traceback__):
        place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
    return ContractError(UNPROCESSABLE, f"processing it failed: {type(problem).__name__}{place}")
