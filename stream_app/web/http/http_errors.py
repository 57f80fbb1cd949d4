"""HTTP status codes for errors about judgements, calibration samples, feedback and rules."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fastapi import HTTPException

from stream_app.core.rules.rule_file import RuleFileError
from stream_app.errors import RapportError
from stream_app.findings.feedback.composition import TooEarly
from stream_app.store.sessions.scored_turns import InvalidJudgement, NotFound, StateConflict

STATUS: Final[dict[type[RapportError], int]] = {
    NotFound: 404,
    TooEarly: 409,
    StateConflict: 409,
    InvalidJudgement: 422,
    RuleFileError: 422,
}


@contextmanager
def as_http_errors() -> Iterator[None]:
    """Convert these errors inside the ``with`` block to ``HTTPException``.

    Raises:
        HTTPException: with the status and text of the error.
    """
    try:
        yield
    except tuple(STATUS) as problem:
        raise HTTPException(STATUS[type(problem)], str(problem)) from None
