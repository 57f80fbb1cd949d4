"""Extreme and hostile values for the fields of events, as JSON values."""

from typing import Any, Final

TIMES: Final[list[Any]] = [
    "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59-14:00", "9999-12-31T23:59:30Z", "1969-12-31T23:59:59Z",
    "1970-01-01T00:00:00Z", "2000-01-01T00:00:00Z", "2026-01-05T10:00:00+23:59",
    "2038-01-19T03:14:08Z", "2026-02-29T00:00:00Z", "2026-01-05T24:00:00Z", "", 0, None,
]  # fmt: skip
WHOLE: Final[list[Any]] = [
    0, 1, -1, 2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 10**400,
]  # fmt: skip
FLOATS: Final[list[Any]] = [0.0, -0.0, 1.0, 5.0, 5e-324, 1.7976931348623157e308, 1e-400]
TEXTS: Final[list[Any]] = [
    "", " ", "\t\n", "\x00", "a\x00b", "\ud800", "\U0010ffff", "\ufeff", "\u202e", "'", '"',
    "12345678 " * 7000, "a@" * 20_000, "\u0301" * 20_000, "𝟙" * 9000, "ß" * 30_000,
    "x" * 60_000, "My name is " + "A" * 30_000, "1 " * 30_000, "%s{}\\", "e" * 200, "e" * 201,
]  # fmt: skip
REDACTED: Final[list[Any]] = [
    "I’m Sarah Connor, " * 3000, "https://a.example/b@c?d=" * 2500, "DE89370400440532013 " * 2500,
    "1980-01-01 " * 5000, "+44 20 7946 0958 " * 3500, "221B Baker Street, " * 3000,
    "(" * 60_000, "@joan_" * 9000, "a.b." * 15_000, "Dr " * 20_000, "1-" * 30_000,
]  # fmt: skip
"""Texts that stress redaction."""
OTHERS: Final[list[Any]] = [None, True, False, [], {}, [[[[[]]]]], {"a": {"a": {"a": 1}}}]
ALL: Final[list[Any]] = [*TIMES, *WHOLE, *FLOATS, *TEXTS, *OTHERS]

FIELDS: Final = {
    "turn": (
        *("session_id", "seq", "speaker_id", "role", "text", "occurred_at", "turn_id", "domain"),
        *("lang", "consent", "channel", "team", "approach", "type"),
    ),
    "session_end": ("session_id", "occurred_at", "reason", "type"),
    "turn_edit": ("session_id", "seq", "turn_id", "text", "occurred_at", "type"),
    "turn_delete": ("session_id", "seq", "turn_id", "occurred_at", "type"),
    "outcome": ("session_id", "kind", "occurred_at", "value", "seq", "outcome_id", "type"),
    "questionnaire": (
        *("session_id", "instrument", "items", "occurred_at", "questionnaire_id", "type"),
    ),
}
