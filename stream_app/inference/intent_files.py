"""Files of intents: shipped sets, and those of an installation."""

from pathlib import Path
from typing import Final

from stream_app.core.measures.intents import NO_INTENTS, IntentSet
from stream_app.core.rules.intent_file import IntentFileError, parse

SHIPPED: Final = Path(__file__).parents[1] / "intents"
"""Contains the shipped sets, and the sample of ordinary turns."""
BACKGROUND: Final = SHIPPED / "background.txt"


def background() -> list[str]:
    """The shipped sample of ordinary turns."""
    return BACKGROUND.read_text(encoding="utf-8").splitlines()


def shipped() -> list[str]:
    """Names of the shipped sets."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def read_shipped(name: str) -> bytes | None:
    """The text of a shipped set; None if there is none of this name."""
    return (SHIPPED / f"{name}.yaml").read_bytes() if name in shipped() else None


def read_bytes(path: Path) -> bytes:
    """The bytes of a file of intents, or of a shipped set by its name.

    Raises:
        IntentFileError: it cannot be read.
    """
    if path.name == str(path) and (found := read_shipped(str(path))) is not None:
        return found
    try:
        return path.read_bytes()
    except OSError as problem:
        raise IntentFileError(
            [
                f"{path}: cannot be read: {problem.strerror}. It must be a file, or one of the "
                f"shipped sets {', '.join(shipped())}"
            ]
        ) from None


def load(path: Path | None) -> IntentSet:
    """The intents of a file or shipped set; none without one.

    Raises:
        IntentFileError: it cannot be read or is not valid; the message has the line.
    """
    if path is None:
        return NO_INTENTS
    return parse(read_bytes(path), str(path), read_shipped)
