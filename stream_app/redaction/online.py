"""E-mail addresses, web addresses and account names (handles)."""

import re
from collections.abc import Iterator
from typing import Final

from stream_app.redaction.near import matches, near_words
from stream_app.redaction.spans import Kind, Span
from stream_app.redaction.vocabulary import vocabulary

_EMAIL = re.compile(r"(?<![\w.+%'-])[\w.+%'-]+@[\w-]+(?:\.[\w-]+)+")
_SPOKEN_EMAIL = re.compile(
    r"(?<![\w.+%-])[\w.+%-]{1,64} ?(?:\[at\]|\(at\)|(?<= )at(?= )) ?[\w-]{1,63}"
    r"(?: ?(?:\[dot\]|\(dot\)|(?<= )dot(?= )) ?[\w-]{2,63}){1,4}",
    re.IGNORECASE,
)
_URL = re.compile(r"(?<![\w@])(?:(?:https?|ftp)://|www\.)[^\s<>\"”|•]+", re.IGNORECASE)
_DOMAINS: Final = (
    "com|org|net|edu|gov|info|biz|app|dev|blog|shop|online|site|uk|us|eu|ie|de|fr|es|nl|pl|ca|au|ch"
    "|at|io|tv"
)
_BARE_URL = re.compile(
    rf"(?<![\w@.-])(?:[a-z0-9](?:[a-z0-9-]{{0,61}}[a-z0-9])?\.){{1,6}}"
    rf"(?:(?:{_DOMAINS})\b(?![\w@.-]{{0,64}}@)(?:/[^\s<>\"”|•]*)?"
    r"|(?:it|me|is|co|to|in|so)/[^\s<>\"”|•]+)",
    re.IGNORECASE,
)
_ENDINGS: Final = tuple(
    f".{ending}" for ending in (*_DOMAINS.split("|"), "it", "me", "is", "co", "to", "in", "so")
)
_LONGEST_PATH: Final = 2000
_BEHIND_URL: Final = ".,;:!?'\"’)]}"
_AT_HANDLE = re.compile(r"(?<![\w@/.])@[\w](?:[\w.-]{0,38}\w)?")
_PAYMENT = re.compile(
    # addresses of India's UPI: the account's name at a bank or app, without a domain
    r"(?<![\w.@%+-])[\w.-]{2,64}@(?:ok(?:axis|hdfcbank|icici|sbi)|ybl|ibl|axl|upi|paytm|pt(?:yes|axis"
    r"|hdfc|sbi)|apl|yapl|rapl|jupiteraxis|freecharge|fam|wa(?:axis|hdfcbank|icici|sbi)|airtel|kotak"
    r"|hdfcbank|icici|axis(?:bank|b|gold)?|sbi|pnb|cnrb|uboi|federal|indus|idfcbank|barodampay|aubank"
    r"|yesbank|yesg|postbank|kbl|rbl|dbs|citi|hsbc|naviaxis|superyes|tapicici|slc|shriramhdfcbank)"
    r"(?![\w@-]|\.\w)",
    re.IGNORECASE,
)
_NAMED_PAYMENT = re.compile(
    r"\b(?:upi|vpa|g ?pay|google pay|phonepe|bhim)(?: (?:id|handle|address|name))?"
    r"(?: is|[:=])? ?(?P<id>[\w.-]{2,64}@[a-z][a-z0-9]{1,30})(?![\w@]|\.\w)",
    re.IGNORECASE,
)
_REDDIT_HANDLE = re.compile(r"(?<![\w/])/?u/[\w-]{2,40}")
_TAGGED_HANDLE = re.compile(r"(?<![\w.])[\w.]{2,32}#\d{4}(?!\d)")
_PLATFORM: Final = (
    "instagram|insta|ig|snap|snapchat|tiktok|tik tok|twitter|discord|telegram|reddit|steam|xbox|psn"
    "|skype|twitch|kik|facebook|fb|messenger|signal|whatsapp|threads|bluesky|tumblr|onlyfans"
)
_PLATFORMS: Final = tuple(_PLATFORM.split("|"))
_HANDLE_WORDS: Final = ("user", "screen", "handle", "gamer", "nickname", "login")
_ON_PLATFORM = re.compile(
    rf"\b(?:{_PLATFORM})(?: (?:account|name|id|user|handle|tag))?"
    r"(?:: ?|,? (?:is |as |it['’]s |i['’]m )?)(?P<handle>[\w][\w.#-]{2,38})",
    re.IGNORECASE,
)
_NAMED_HANDLE = re.compile(
    r"\b(?:user ?name|screen ?name|handle|gamer ?tag|nickname|login)"
    r"(?: there| here| online)?(?: is| was|:|=|['’]s) ?(?P<handle>[\w][\w.#-]{2,38})",
    re.IGNORECASE,
)
_NO_HANDLES: Final = vocabulary("online", "no_handles")
_AT_PLACES: Final = vocabulary("online", "at_places")
_MADE_UP = re.compile(r"(?=[\d_.#-]*[^\W\d_])\w*(?:[\d_#]|[a-z][A-Z]|\.\w)")


def online(text: str) -> Iterator[Span]:
    """E-mail, web and payment addresses, and handles."""
    if "@" in text:
        yield from (Span(*match.span(), Kind.EMAIL) for match in _EMAIL.finditer(text))
        yield from (
            Span(*match.span(), Kind.HANDLE)
            for match in _AT_HANDLE.finditer(text)
            if match.group()[1:].lower() not in _AT_PLACES
        )
        yield from _payments(text)
    if "dot" in text.lower():
        yield from (
            Span(*match.span(), Kind.EMAIL)
            for match in matches(_SPOKEN_EMAIL, text, near_words(text, ("dot",), 160, 90))
        )
    if "." in text:
        yield from _urls(text)
    yield from _handles(text)


def _payments(text: str) -> Iterator[Span]:
    at = list(near_words(text, ("@",), 70, 40))
    yield from (Span(*match.span(), Kind.OTHER_ID) for match in matches(_PAYMENT, text, at))
    at = list(near_words(text, ("@",), 100, 40))
    for match in matches(_NAMED_PAYMENT, text, at):
        yield Span(*match.span("id"), Kind.OTHER_ID)


def _urls(text: str) -> Iterator[Span]:
    bare = near_words(text, _ENDINGS, 260, _LONGEST_PATH)
    for found in (_URL.finditer(text), matches(_BARE_URL, text, bare)):
        for match in found:
            kept = match.group().rstrip(_BEHIND_URL)
            if kept.count("(") > kept.count(")") and match.group()[len(kept) :].startswith(")"):
                kept += ")"
            yield Span(match.start(), match.start() + len(kept), Kind.URL)


def _handles(text: str) -> Iterator[Span]:
    if "u/" in text:
        yield from (Span(*match.span(), Kind.HANDLE) for match in _REDDIT_HANDLE.finditer(text))
    if "#" in text:
        yield from (Span(*match.span(), Kind.HANDLE) for match in _TAGGED_HANDLE.finditer(text))
    platforms = near_words(text, _PLATFORMS, 1, 70, beginnings=True)
    for match in matches(_ON_PLATFORM, text, platforms):
        if _MADE_UP.match(match["handle"]):
            yield _handle(match)
    named = near_words(text, _HANDLE_WORDS, 1, 70, beginnings=True)
    for match in matches(_NAMED_HANDLE, text, named):
        if match["handle"].lower() not in _NO_HANDLES:
            yield _handle(match)


def _handle(match: re.Match[str]) -> Span:
    start, end = match.span("handle")
    return Span(start, end - (match["handle"][-1] in ".-"), Kind.HANDLE)
