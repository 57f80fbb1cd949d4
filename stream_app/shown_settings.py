"""The settings in force, for people to read: secrets are masked."""

import os
from collections.abc import Iterator

from msgspec import Struct
from pydantic import SecretStr

from stream_app import secret_files
from stream_app.settings import Settings
from stream_app.store.connection import masked_url

MASKED = "********"


class ShownSetting(Struct, frozen=True):
    """One setting. ``value``: empty if it is not set; secrets are masked."""

    variable: str
    value: str
    description: str


def shown_settings(settings: Settings) -> Iterator[ShownSetting]:
    """All settings, then the files that hold secrets."""
    for name, info in Settings.model_fields.items():
        value = _shown(name, getattr(settings, name))
        yield ShownSetting(f"RAPPORT_{name.upper()}", value, info.description or "")
    for name, variable in secret_files.variables(Settings).items():
        holds = f"File that holds RAPPORT_{name.upper()}"
        yield ShownSetting(variable, os.environ.get(variable, ""), holds)


def _shown(name: str, value: object) -> str:
    match value:
        case SecretStr() if name in ("database_url", "database_read_url"):
            return masked_url(value.get_secret_value())
        case SecretStr():
            return MASKED
        case None:
            return ""
        case _:
            return str(getattr(value, "value", value))
