"""The settings in force, for people to read: secrets are masked."""

import os
from collections.abc import Iterator

from msgspec import Struct
from pydantic import SecretStr

from stream_app import secret_files
from stream_app.settings import Settings
from stream_app.store.database.connection import masked_url

MASKED = "********"


class ShownSetting(Struct, frozen=True):
    """One setting. ``value``: empty if it is not set; secrets are masked.

    ``source``: ``environment``, ``file`` (of a secret), ``policy``, ``command`` (set by it) or
    ``default``.
    """

    variable: str
    value: str
    description: str
    source: str


def shown_settings(settings: Settings) -> Iterator[ShownSetting]:
    """All settings, then the files that hold secrets."""
    for name, info in Settings.model_fields.items():
        value = _shown(name, getattr(settings, name))
        variable = f"RAPPORT_{name.upper()}"
        by_policy = settings.profile.values if settings.profile else {}
        otherwise = "policy" if name in by_policy else "command"
        source = _source(variable, otherwise) if name in settings.model_fields_set else "default"
        yield ShownSetting(variable, value, info.description or "", source)
    for name, variable in secret_files.variables(Settings).items():
        holds = f"File that holds RAPPORT_{name.upper()}"
        value = os.environ.get(variable, "")
        yield ShownSetting(variable, value, holds, "environment" if value else "default")


def _source(variable: str, otherwise: str) -> str:
    if variable in {name.upper() for name in os.environ}:
        return "environment"
    return "file" if os.environ.get(f"{variable}_FILE") else otherwise


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
