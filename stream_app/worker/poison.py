"""Whose fault an error is: that of an event, or of what the worker stands on."""

import traceback
from pathlib import Path
from typing import Final

from stream_app.errors import ContractError, RapportError, RowRefused

UNPROCESSABLE: Final = "unprocessable"


def may_be_poison(problem: BaseException) -> bool:
    """Whether an event may have led to this error; not so memory, disk, network and database."""
    if isinstance(problem, RapportError):
        return isinstance(problem, RowRefused)
    return isinstance(problem, Exception) and not isinstance(problem, MemoryError | OSError)


def as_contract_error(problem: BaseException) -> ContractError:
    """Why an event is set aside that led to this error; never its message, which may quote text."""
    place = ""
    if frames := traceback.extract_tb(problem.__traceback__):
        place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
    return ContractError(UNPROCESSABLE, f"processing it failed: {type(problem).__name__}{place}")
