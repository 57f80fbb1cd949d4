"""National, tax, health and passport numbers, by check digits or by what they are called."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from stdnum.de import idnr
from stdnum.es import dni, nie
from stdnum.fr import nir
from stdnum.gb import nhs
from stdnum.in_ import aadhaar, epic, pan
from stdnum.it import codicefiscale
from stdnum.nl import bsn
from stdnum.pl import pesel

from stream_app.redaction.near import Places, matches
from stream_app.redaction.spans import Kind, Span

_SHAPES: Final = re.compile(
    r"(?<![\w-])(?:"
    r"\d{3}[- ]\d{2}[- ]\d{4}"  # US social security number
    r"|[A-Za-z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-Da-d]"  # GB national insurance number
    r"|[A-Z9]{5}\d{6}[A-Z9]{2}\w[A-Z]{2}"  # GB driving licence
    r"|[1-9][A-Z][A-Z0-9]\d-?[A-Z][A-Z0-9]\d-?[A-Z]{2}\d{2}"  # US Medicare
    r"|\d{2} ?\d{6} ?[A-Z] ?\d{3}"  # DE social insurance
    r")(?![\w-])"
)
_CHECKED: Final[tuple[tuple[re.Pattern[str], Callable[[str], bool]], ...]] = tuple(
    (re.compile(rf"(?<![\w-]){shape}(?![\w-])"), is_valid)
    for shape, is_valid in (
        (r"\d{3}[ -]?\d{3}[ -]?\d{4}", nhs.is_valid),
        (r"\d{2} ?\d{3} ?\d{3} ?\d{3}", idnr.is_valid),
        (r"[12] ?\d{2} ?\d{2} ?\d[\dAB] ?\d{3} ?\d{3} ?\d{2}", nir.is_valid),
        (r"\d{8}[- ]?[A-Za-z]", dni.is_valid),
        (r"[XYZxyz][- ]?\d{7}[- ]?[A-Za-z]", nie.is_valid),
        (
            r"[A-Za-z]{6}[\dA-Za-z]{2}[A-Za-z][\dA-Za-z]{2}[A-Za-z][\dA-Za-z]{3}[A-Za-z]",
            codicefiscale.is_valid,
        ),
        (r"\d{4}[. ]?\d{2}[. ]?\d{3}|\d{3}[. ]\d{3}[. ]\d{3}", bsn.is_valid),
        (r"\d{11}", pesel.is_valid),
        (r"[A-Za-z]{3}[ABCFGHJLPTabcfghjlpt][A-Za-z]\d{4}[A-Za-z]", pan.is_valid),
        (r"\d{4}[ -]?\d{4}[ -]?\d{4}", aadhaar.is_valid),
        (r"[A-Za-z]{3}\d{7}", epic.is_valid),
    )
)
_NAMED = re.compile(
    r"\b(?:passport|pass|ausweis|personalausweis|carte d['’]identité|dowód|id card|identity card"
    r"|identity number|national id|national insurance|ni|nino|nhs|ssn|social security|social"
    r"|medicare|medicaid|tax|tax id|tin|steuer-?id|steuernummer|sécu|dni|nie|nif"
    r"|codice fiscale|bsn|pesel|pan|aadhaar|aadhar|voter|epic"
    r"|driv(?:er['’]?s?|ing) licen[cs]e|licen[cs]e"
    r"|sozialversicherungsnummer"
    r")(?: card)?(?: number| no\.?| nr\.?| id|#)?(?: is| was|:|,| =|=)? ?"
    r"(?P<id>(?=[A-Z ]{0,5}\d)[A-Z]{0,3} ?\d(?:[ ./-]?[A-Z0-9]){5,17})(?!\w)",
    re.IGNORECASE,
)


def national_ids(text: str, places: Places) -> Iterator[Span]:
    """Identity numbers of nine countries, and passports."""
    for match in matches(_SHAPES, text, places):
        yield Span(*match.span(), Kind.NATIONAL_ID)
    for shape, is_valid in _CHECKED:
        for match in matches(shape, text, places):
            if is_valid(match.group()):
                yield Span(*match.span(), Kind.NATIONAL_ID)
    for match in matches(_NAMED, text, places):
        yield Span(*match.span("id"), Kind.NATIONAL_ID)
