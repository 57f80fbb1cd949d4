"""Answers with rows as a file that browsers save."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from fastapi.responses import StreamingResponse

from stream_app.findings.exports.columns import Column, Row
from stream_app.findings.exports.formats import MEDIA_TYPES, Format, encode


def as_file(
    wanted: Format, columns: list[Column], pages: Iterator[Sequence[Row]], name: str
) -> StreamingResponse:
    """The rows in this format, named after the day and ``name``."""
    return as_attachment(
        encode(wanted, columns, pages), MEDIA_TYPES[wanted], f"{name}.{wanted.value}"
    )


def as_attachment(pieces: Iterator[bytes], media_type: str, name: str) -> StreamingResponse:
    """A streamed file."""
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    headers = {"Content-Disposition": f'attachment; filename="rapport-{day}-{name}"'}
    return StreamingResponse(pieces, media_type=media_type, headers=headers)
