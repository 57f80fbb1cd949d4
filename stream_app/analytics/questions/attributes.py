"""Self-declared attributes of counsellors and clients: an opt-in file that is never stored.

The questions about pairs and, for clients, about fairness use it. Without the setting
``RAPPORT_SELF_DECLARED_ATTRIBUTES`` they are off.
"""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Final

from stream_app.errors import RapportError

COLUMNS: Final = ("speaker_id", "attribute")


class AttributesError(RapportError):
    """The file of self-declared attributes cannot be used."""


class NotEnabled(RapportError):
    """The question needs self-declared attributes, and none are configured."""


def read(file: Path, pseudonym: Callable[[str], str]) -> dict[str, str]:
    """Attributes by pseudonym, from a CSV file with the columns speaker_id and attribute.

    The file may begin with a byte order mark, which spreadsheets write.

    Raises:
        AttributesError: the file cannot be read or lacks a column.
    """
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream)
            if not set(COLUMNS) <= set(reader.fieldnames or ()):
                raise AttributesError(f"{file} needs the columns {' and '.join(COLUMNS)}")
            return {
                pseudonym(row["speaker_id"]): row["attribute"].strip()
                for row in reader
                if row["attribute"] and row["attribute"].strip()
            }
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise AttributesError(f"{file} cannot be read ({type(problem).__name__})") from None
