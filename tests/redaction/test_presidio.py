"""Presidio as a redactor, with a fake analyser of Presidio's interface."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from stream_app.errors import RapportError
from stream_app.plain_text.mapped import MASK
from stream_app.redaction.mask import redact
from stream_app.redaction.presidio import KINDS, LONGEST_PIECE, PresidioRedactor, open_presidio


class Found(NamedTuple):
    entity_type: str
    start: int
    end: int
    score: float


class Analyzer:
    """Finds the word ``Quuxley``, as a person and as a date."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    def analyze(
        self, text: str, language: str, entities: list[str], score_threshold: float
    ) -> Sequence[Found]:
        assert language == "en"
        self.asked.append((text, entities))
        at = text.find("quuxley")
        return [Found(kind, at, at + 7, 0.9) for kind in ("PERSON", "DATE_TIME") if at >= 0]

    def get_supported_entities(self, language: str) -> list[str]:
        assert language == "en"
        return ["PERSON", "DATE_TIME", "US_SSN"]


def test_what_presidio_finds_is_masked_beside_what_the_rules_find() -> None:
    said = "quuxley wrote to joan@example.org"
    assert redact(said, PresidioRedactor(Analyzer())) == f"{MASK * 7} wrote to {MASK * 16}"


def test_only_personal_entities_that_are_supported_are_asked_for() -> None:
    analyzer = Analyzer()
    list(PresidioRedactor(analyzer).find("hello"))
    assert analyzer.asked == [("hello", ["PERSON", "US_SSN"])]
    assert "DATE_TIME" not in KINDS


def test_a_long_text_is_analysed_in_pieces_and_spans_keep_their_places() -> None:
    analyzer = Analyzer()
    said = "word " * 1000 + "quuxley " + "word " * 1000
    masked = redact(said, PresidioRedactor(analyzer))
    assert masked == said.replace("quuxley", MASK * 7)
    assert max(len(piece) for piece, _ in analyzer.asked) <= LONGEST_PIECE


def test_without_the_package_a_sentence_says_what_to_install() -> None:
    try:
        import presidio_analyzer  # noqa: F401, PLC0415
    except ImportError:
        with pytest.raises(RapportError, match=r"rapport-empathy\[presidio\]"):
            open_presidio(None)
