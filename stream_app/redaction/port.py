"""The port for finding personal details."""

from collections.abc import Iterable
from typing import Protocol

from stream_app.redaction.spans import Span


class Redactor(Protocol):
    """Finds personal details. Safe to call from several threads."""

    def find(self, text: str) -> Iterable[Span]:
        """Spans of personal details in any order; they may overlap.

        Never raises because of the text, and takes time in proportion to its length.
        """
