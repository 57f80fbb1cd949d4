"""Account, case, customer, vehicle and device numbers, by what they are called or their shape."""

import re
from collections.abc import Iterator
from typing import Final

from stream_app.redaction.near import Places, matches
from stream_app.redaction.spans import Kind, Span

_CALLED: Final = (
    "account|acct|a/c|bank|case|claim|client|contract|customer|policy|invoice|booking|reservation"
    "|order|tracking|member|membership|student|pupil|employee|employer|staff|personnel|badge"
    "|patient|hospital|medical record|mrn|chart|prescription|insurance|prison|prisoner|inmate"
    "|docket|court|police|crime|incident|ticket|file|record|routing|sort code|swift|bic|serial"
    "|device|imei|vin|vehicle|plate|number ?plate|licen[cs]e plate|car registration|registration"
    "|reg|licen[cs]e|permit|visa|reference|ref|user|loyalty|library card|meter|card|aktenzeichen"
    "|kennzeichen|targa|kenteken|matr[ií]cula|ip|ip address"
)
_REFERENCE = re.compile(
    rf"\b(?:{_CALLED})(?P<numbered>(?: reference| ref| card| plate| code)?\.?"
    r"(?: numbers?| no\.?| nr\.?| num\.?| id| ?#)?)"
    r"(?P<is>(?: is| was|:|,| =|=)?) {0,2}#?"
    r"(?P<id>(?=[A-Z/ -]{0,6}\d|[A-Z]{1,6}\d|[A-Z]{2}\d?[A-Z])[A-Z0-9](?:[/.:#-]?[A-Z0-9]){2,31})"
    r"(?P<more>(?: [A-Z0-9]{1,5}(?!\w)){0,2})",
    re.IGNORECASE,
)
_FEWEST_DIGITS: Final = 3
"""Fewest digits of a number that is called "case 123" and not "case number 1"."""
_PLATES = re.compile(
    r"(?<![\w-])(?:"
    r"[A-Z]{2}\d{2} ?[A-Z]{3}"  # GB
    r"|[A-Z]{2}-\d{3}-[A-Z]{2}"  # FR, IT
    r"|[A-ZÄÖÜ]{1,3}-[A-Z]{1,2} ?\d{2,4}"  # DE
    r"|\d{1,2}-[A-Z]{2,3}-\d{1,2}|[A-Z]{1,2}-\d{2,3}-[A-Z]{1,2}"  # NL
    r")(?![\w-])"
)
_CALLED_PLATE = re.compile(
    r"\b(?:plates?|registration|reg|kennzeichen|targa|kenteken|matr[ií]cula|rejestracja)"
    r"(?: number| no\.?)?(?: is| was|:|,)? ?"
    r"(?P<id>(?=[A-Z -]{0,6}\d)[A-Z0-9]{1,3}(?:[ -]?[A-Z0-9]{1,5}){1,2})(?!\w)"
)
_COURT_FILE = re.compile(r"(?<!\w)\d{1,3} [A-Z][A-Za-z]{0,2} \d{1,5}/\d{2,4}(?!\w)")
_ADDRESSES = re.compile(
    r"(?<![\w.:])(?:"
    r"(?:\d{1,3}\.){3}\d{1,3}"
    r"|(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}"
    r"|(?:[0-9A-Fa-f]{1,4}:){3,7}:?[0-9A-Fa-f]{1,4}"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?=[A-Z]{0,16}\d)[A-HJ-NPR-Z0-9]{17}"  # vehicle identification number
    r")(?![\w:])",
)


def references(text: str, places: Places) -> Iterator[Span]:
    """Numbers that stand for a person's account, case, car or device."""
    for match in matches(_REFERENCE, text, places):
        if _is_reference(match):
            yield Span(match.start("id"), match.end("id"), Kind.OTHER_ID)
    for pattern in (_PLATES, _COURT_FILE, _ADDRESSES):
        for match in matches(pattern, text, places):
            yield Span(*match.span(), Kind.OTHER_ID)
    for match in matches(_CALLED_PLATE, text, places):
        yield Span(*match.span("id"), Kind.OTHER_ID)


def _is_reference(match: re.Match[str]) -> bool:
    found = match["id"]
    digits = sum(char.isdigit() for char in found)
    if match["numbered"].strip() or match["is"].strip() == ":":
        return bool(digits) or found.isupper()
    return digits >= _FEWEST_DIGITS and not found.lower().endswith(
        ("th", "st", "nd", "rd", "am", "pm")
    )
