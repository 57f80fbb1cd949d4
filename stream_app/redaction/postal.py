"""Postal addresses in the formats of eight countries, and postcodes."""

import re
from collections.abc import Iterator
from typing import Final

from stream_app.redaction.near import Places, matches, near_words
from stream_app.redaction.spans import Kind, Span

_CAPITAL: Final = r"[^\W\d_a-z][\w’'.-]{0,30}"
_STREETS: Final = (
    "Street|St|Road|Rd|Avenue|Ave|Av|Lane|Ln|Drive|Dr|Close|Court|Ct|Crescent|Cres|Terrace|Ter|Way"
    "|Place|Pl|Gardens|Gdns|Boulevard|Blvd|Square|Sq|Grove|Mews|Parkway|Pkwy|Highway|Hwy|Row|Walk"
    "|Hill|Park|Parade|Circle|Cir|Trail|Alley|Quay|Rise|Green|Loop|Plaza|Broadway|Embankment"
)
_POSTCODE: Final = (
    r"(?:[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}"  # GB
    r"|[A-Z]{2},? \d{5}(?:-\d{4})?"  # US, with its state
    r"|\d{4} ?[A-Z]{2}(?!\w)(?: [^\W\d_a-z][\w’'-]{1,30}){0,2}"  # NL
    r"|\d{2}-\d{3} [^\W\d_a-z][\w’'-]{1,30}"  # PL
    r"|\d{5} [^\W\d_a-z][\w’'-]{1,30}(?: [^\W\d_a-z][\w’'-]{1,30})?)"  # DE, FR, ES, IT
)
_TAIL: Final = (
    rf"(?:(?:, ?(?:{_CAPITAL}(?: {_CAPITAL}){{0,3}}|\d\w?[ºª]? ?[A-Z]?(?!\w)),?){{0,2}}"
    rf",? ?{_POSTCODE}"
    r"|, ?\d\w?[ºª] ?[A-Z]?(?!\w))?"
)
_UNIT: Final = r"(?:[Ff]lat|[Aa]pt\.?|[Aa]partment|[Uu]nit|[Ss]uite|[Rr]oom|#) ?\w{1,4}"
_HOUSE: Final = r"\d{1,5} ?[A-Za-z]?(?:[-/]\d{1,4}[a-z]?)?"
_STREET_ENGLISH: Final = (
    rf"(?:{_UNIT},? (?:{_CAPITAL} {{1,2}}House, )?)?{_HOUSE},? (?:[NSEW]{{1,2}}\.? )?"
    rf"(?:{_CAPITAL} ){{1,3}}(?:{_STREETS})\b\.?(?:,? {_UNIT})?"
)
_GERMANIC: Final = (
    r"(?:[^\W\d_a-z][\w-]{0,30}? ?(?:[Ss]tra(?:ß|ss)e|[Ss]tr\.|[Ww]eg|[Pp]latz|[Aa]llee|[Gg]asse"
    r"|[Rr]ing|[Dd]amm|[Uu]fer|straat|[Ll]aan|weg|plein|gracht|kade|dijk|hof|singel)"
    r"|(?:Am|An der|Im|Zum|Zur|Auf dem) [^\W\d_a-z][\w-]{1,30})"
    r" \d{1,4} ?[a-z]?(?![\w])"
)
_FRENCH: Final = (
    r"\d{1,4}(?: ?bis| ?ter|[A-Za-z])?,? (?:rue|avenue|boulevard|bd|place|chemin|allée|impasse|quai"
    r"|cours|route)(?: (?:de la|de l['’]|des|de|du|d['’])?(?:(?<=['’])| )?"
    r"[^\W\d_a-z][\w’'-]{1,30}){1,3}"
)
_SOUTHERN: Final = (
    r"(?:Calle|C/|Avenida|Avda\.?|Plaza|Paseo|Carrer|Via|Viale|Piazza|Corso|Vicolo|Largo)"
    r"(?: (?:de la|de los|de las|de|del|della|dei|di|d['’]))?(?: [^\W\d_a-z][\w’'-]{1,30}){1,3}"
    r",? (?:n[º°.] ?)?\d{1,4}(?:/?[A-Za-z](?!\w))?"
)
_POLISH: Final = (
    r"(?:ul\.|al\.|pl\.|os\.|ulica|aleja) ?(?:[^\W\d_a-z][\w-]{1,30} ){1,3}"
    r"\d{1,4}[a-z]?(?:/\d{1,4})?"
)
_BOX: Final = r"P\.? ?O\.? [Bb]ox \d{1,6}"
_ADDRESS = re.compile(
    rf"(?<![\w.-])(?:{_STREET_ENGLISH}|{_GERMANIC}|{_FRENCH}|{_SOUTHERN}|{_POLISH}|{_BOX}){_TAIL}"
)
_STREET_LOWER = re.compile(
    r"(?<![\w.,])\d{1,5}[a-z]? (?!(?:minutes?|mins?|hours?|hrs?|miles?|days?|years?|weeks?|months?"
    r"|times?|km|k|or|and|of|to|am|pm|people|kids|cars?)\b)[a-z]{3,20}(?: [a-z]{3,20})? "
    r"(?:street|road|avenue|crescent|boulevard|lane)\b"
)
_STREET_ALONE = re.compile(
    r"(?<!\w)(?:(?:[^\W\d_a-z][\w’']{2,30}) ){1,2}(?:Street|Road|Avenue|Lane|Crescent|Boulevard)\b"
)
_STREET_WORDS: Final = ("street", "road", "avenue", "lane", "crescent", "boulevard")
_KNOWN_STREETS: Final = re.compile(
    r"(?:Wall|Sesame|Coronation|Downing|High|Main|Fleet|Abbey|Fifth|Madison|The|Silk|This|That|My|Our)"
    r" (?:Street|Road|Avenue)"
)
_ZIP_CITY = re.compile(
    r"(?<![\w.,-])(?:[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}(?!\w)|[A-Z]{2} \d{5}(?:-\d{4})?(?![\w-]))"
)
_NAMED_POSTCODE = re.compile(
    r"\b(?:post ?code|post-code|zip|zip ?code|postal code|plz|code postal|código postal|cap|kod"
    r" pocztowy)(?: is|:|,)? ?(?P<code>(?=[A-Z]{0,2} ?\d)[A-Z0-9][A-Z0-9 -]{2,8}[A-Z0-9])(?!\w)",
    re.IGNORECASE,
)


def addresses(text: str, places: Places) -> Iterator[Span]:
    """Streets with house numbers, with towns and postcodes behind them; postcodes alone."""
    for pattern in (_ADDRESS, _STREET_LOWER, _ZIP_CITY):
        for match in matches(pattern, text, places):
            yield Span(*match.span(), Kind.ADDRESS)
    for match in matches(_NAMED_POSTCODE, text, places):
        yield Span(*match.span("code"), Kind.ADDRESS)


def streets(text: str) -> Iterator[Span]:
    """Streets without a house number."""
    for match in matches(_STREET_ALONE, text, near_words(text, _STREET_WORDS, 80, 12)):
        if not _KNOWN_STREETS.fullmatch(match.group()):
            yield Span(*match.span(), Kind.ADDRESS)
