"""Dates of birth: dates beside a word such as "born" or "birthday"; other dates stay."""

import re
from collections.abc import Iterator
from typing import Final

from stream_app.redaction.near import matches, near_words
from stream_app.redaction.spans import Kind, Span

_MONTHS: Final = (
    # English; German, French, Spanish, Italian, Dutch, Polish where they differ
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    "|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
    "|januar|februar|märz|mai|juni|juli|oktober|dezember"
    "|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre"
    "|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
    "|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre"
    "|januari|februari|maart|mei|augustus"
    "|stycznia|lutego|marca|kwietnia|maja|czerwca|lipca|sierpnia|września|października|listopada"
    "|grudnia"
)
_DAY: Final = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th|\.|er)?"
_YEAR: Final = r"(?:(?:19|20)\d{2}|['’]?\d{2})"
_DATE: Final = (
    rf"(?:\d{{1,4}}[./-]\d{{1,2}}(?:[./-]\d{{2,4}})?"
    rf"|(?:the |le |el |il )?{_DAY}(?: of| de)? (?:{_MONTHS})\b\.?(?:,? (?:de )?{_YEAR}\b)?"
    rf"|(?:{_MONTHS})\b\.? {_DAY}\b(?:,? {_YEAR}\b)?)"
)
_BORN: Final = (
    r"(?:birth|born|birth ?date|birth ?day|b-?day|d\.?o\.?b\.?|geboren|geburtstag|geburtsdatum"
    r"|née?|naissance|nacid[oa]|nacimiento|nat[oa] il|nascita|geboortedatum|urodzon[ya])"
)
_BEHIND = re.compile(
    rf"\b{_BORN}(?!\w)[\s:,=-]{{0,5}}"
    r"(?:(?:is|was|to me|on|in|the|le|el|il|am|this|next|year)[\s:,]{1,5}){0,6}"
    rf"(?P<date>{_DATE})(?![\w/])",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    rf"(?<![\w/])(?P<date>{_DATE})[\s,]{{1,5}}(?:is|was)\s{{1,5}}"
    r"(?:my|his|her|their|our) (?:birth|b-?)day",
    re.IGNORECASE,
)


_CUES: Final = (
    *("birth", "born", "b-day", "bday", "dob", "d.o.b", "gebor", "geburt", "né", "naissance"),
    *("nacid", "nacim", "nato il", "nata il", "nascita", "geboort", "urodzon"),
)


def birth_dates(text: str) -> Iterator[Span]:
    """The dates, without the words around them."""
    for pattern in (_BEHIND, _BEFORE):
        for match in matches(pattern, text, near_words(text, _CUES, 40, 90)):
            yield Span(*match.span("date"), Kind.BIRTH_DATE)
