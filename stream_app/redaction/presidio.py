"""Microsoft Presidio as a redactor, with its models for names and places, beside the rules.

Presidio and a language model are installed separately (the extra ``presidio``).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from stream_app import extras
from stream_app.errors import RapportError
from stream_app.redaction.rules import Rules
from stream_app.redaction.spans import Kind, Span

LANGUAGE: Final = "en"
LEAST_SCORE: Final = 0.4
LONGEST_PIECE: Final = 2000
"""Characters that are analysed at once; a model's time and memory grow with the piece."""
KINDS: Final = {
    "PERSON": Kind.MENTIONED_NAME,
    "LOCATION": Kind.PLACE,
    "EMAIL_ADDRESS": Kind.EMAIL,
    "URL": Kind.URL,
    "PHONE_NUMBER": Kind.PHONE,
    "CREDIT_CARD": Kind.CARD,
    "IBAN_CODE": Kind.IBAN,
    "IP_ADDRESS": Kind.OTHER_ID,
    "CRYPTO": Kind.OTHER_ID,
    "MEDICAL_LICENSE": Kind.OTHER_ID,
    "US_BANK_NUMBER": Kind.OTHER_ID,
    "US_DRIVER_LICENSE": Kind.NATIONAL_ID,
    "US_ITIN": Kind.NATIONAL_ID,
    "US_PASSPORT": Kind.NATIONAL_ID,
    "US_SSN": Kind.NATIONAL_ID,
    "UK_NHS": Kind.NATIONAL_ID,
    "UK_NINO": Kind.NATIONAL_ID,
}
"""Presidio's entities that are masked: not its dates ("yesterday"), nationalities or titles."""


class Result(Protocol):
    """The used part of ``presidio_analyzer.RecognizerResult``."""

    entity_type: str
    start: int
    end: int
    score: float


class Analyzer(Protocol):
    """The used part of ``presidio_analyzer.AnalyzerEngine``."""

    def analyze(
        self, text: str, language: str, entities: list[str], score_threshold: float
    ) -> Sequence[Result]:
        """Find entities."""

    def get_supported_entities(self, language: str) -> list[str]:
        """Entities that any recogniser finds; others cannot be asked for."""


class PresidioRedactor:
    """Joins the findings of the rules and of Presidio."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._rules = Rules()
        supported = analyzer.get_supported_entities(LANGUAGE)
        self._entities = [entity for entity in KINDS if entity in supported]

    def find(self, text: str) -> Iterator[Span]:
        """Spans of both."""
        yield from self._rules.find(text)
        for start, piece in pieces(text):
            if any(map(str.isalnum, piece)):
                for found in self._analyzer.analyze(
                    piece, LANGUAGE, self._entities, score_threshold=LEAST_SCORE
                ):
                    kind = KINDS.get(found.entity_type)
                    if kind is not None:
                        yield Span(start + found.start, start + found.end, kind)


def pieces(text: str) -> Iterator[tuple[int, str]]:
    """``text`` in pieces that end with white space where there is some, with their places.

    >>> [piece for _, piece in pieces("word " * 401)][1:]
    ['word ']
    """
    start = 0
    while start < len(text):
        end = start + LONGEST_PIECE
        if end < len(text):
            space = max(text.rfind(mark, start + LONGEST_PIECE // 2, end) for mark in " \n\t")
            end = end if space < 0 else space + 1
        yield start, text[start:end]
        start = end


def open_presidio(config: Path | None) -> PresidioRedactor:
    """Load Presidio with an analyser configuration (YAML), or with its own defaults.

    Raises:
        RapportError: Presidio or its language model is missing, or the configuration is not valid.
    """
    try:
        from presidio_analyzer import AnalyzerEngineProvider  # noqa: PLC0415
    except ImportError as missing:
        raise RapportError(
            f"RAPPORT_REDACTOR=presidio needs the extra: {extras.to_install('presidio')}"
        ) from missing
    try:
        analyzer = AnalyzerEngineProvider(analyzer_engine_conf_file=config).create_engine()
    except (Exception, SystemExit) as problem:
        raise RapportError(
            f"Presidio does not start ({type(problem).__name__}): install its language model "
            "(docs/redaction.md) or check the file in RAPPORT_REDACTOR"
        ) from problem
    return PresidioRedactor(analyzer)
