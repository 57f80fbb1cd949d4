"""Where personal details lie in a text."""

from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    """Classes of personal details."""

    INTRODUCED_NAME = "introduced_name"
    MENTIONED_NAME = "mentioned_name"
    PLACE = "place"
    ADDRESS = "address"
    EMAIL = "email"
    URL = "url"
    HANDLE = "handle"
    PHONE = "phone"
    CARD = "card"
    IBAN = "iban"
    NATIONAL_ID = "national_id"
    BIRTH_DATE = "birth_date"
    OTHER_ID = "other_id"


class Span(NamedTuple):
    """Characters ``start`` up to ``end`` of a text are a detail of this kind."""

    start: int
    end: int
    kind: Kind
