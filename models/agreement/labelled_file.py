"""Files of ratings: JSON lines, one value a line, without any text of the items.

    {"session": "s-1", "item": "4", "coder": "anna", "variable": "reflection", "value": "simple"}

`kind` is "expert" unless it says "llm" or "rapport"; `value` is a string or a whole number. Other
fields are ignored, and lines without a value (null: the coder gave no valid answer) are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from models.agreement.ratings import Coder, Kind, Rating, RatingsError


class Line(Struct):
    """One line of a file of ratings."""

    session: str
    item: str | int
    coder: str
    variable: str
    value: str | int | None
    kind: Kind = "expert"


def read(files: Iterable[Path]) -> Iterator[Rating]:
    """Read the ratings of all files.

    Raises:
        RatingsError: a file cannot be read, or a line is not a rating; with file and line number.
    """
    decoder = msgspec.json.Decoder(Line)
    for file in files:
        try:
            lines = file.open("rb")
        except OSError as problem:
            raise RatingsError(f"{file} cannot be read: {problem.strerror}") from None
        with lines:
            for number, raw in enumerate(lines, 1):
                if raw.strip():
                    try:
                        line = decoder.decode(raw)
                    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
                        raise RatingsError(f"{file}, line {number}: {problem}") from None
                    if line.value is not None:
                        yield _rating(line)


def _rating(line: Line) -> Rating:
    coder = Coder(line.coder, line.kind)
    return Rating(line.session, str(line.item), coder, line.variable, str(line.value))


def write(file: Path, ratings: Iterable[Rating]) -> None:
    """Write ratings as a file that `read` reads."""
    lines = [
        Line(each.session, each.item, each.coder.name, each.variable, each.value, each.coder.kind)
        for each in ratings
    ]
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
