"""Request fields shared by several routes, with their limits."""

from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import Form, Path, Query
from pydantic import AfterValidator, AwareDatetime, StringConstraints

from stream_app.contracts.events import MAX_ID_CHARS

NO_NUL: Final = r"^[^\x00]+$"
"""PostgreSQL stores no NUL character."""

Identifier = Annotated[
    str, StringConstraints(min_length=1, max_length=MAX_ID_CHARS, pattern=NO_NUL)
]
Note = Annotated[str, StringConstraints(min_length=1, max_length=4000, pattern=r"^[^\x00]+$")]
Comment = Annotated[str, StringConstraints(max_length=4000, pattern=r"^[^\x00]*$")]
FormNote = Annotated[Annotated[Note, StringConstraints(strip_whitespace=True)], Form()]
FormComment = Annotated[Annotated[Comment, StringConstraints(strip_whitespace=True)], Form()]
MAX_SEQ: Final = 2**31 - 1
Seq = Annotated[int, Path(ge=0, le=MAX_SEQ, description="The turn's number")]
EpisodeId = Annotated[Identifier, Path(description="The alert's `episode_id`")]
Cursor = Annotated[
    Annotated[str, StringConstraints(max_length=2000)] | None,
    Query(description="`next_cursor` of the previous page; omit it for the first page"),
]
Limit = Annotated[int, Query(ge=1, le=500, description="Maximum number of items per page")]
Team = Annotated[Identifier | None, Query(description="Only this team")]


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time is outside the years 1 to 9999 in UTC") from None


Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
VersionNumber = Annotated[int, Path(ge=1, le=2**31 - 1, description="Number of the version")]
