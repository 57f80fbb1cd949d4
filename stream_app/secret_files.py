"""Secrets from files: ``RAPPORT_X_FILE`` names a file that holds the secret setting ``RAPPORT_X``.

The convention of Docker and Kubernetes secrets. Every field of type ``SecretStr`` has the variant;
a settings class that declares a field ``x_file`` itself handles that file itself.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import InitErrorDetails, PydanticCustomError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

SUFFIX: Final = "_file"
MOST_BYTES: Final = 64 * 1024


class UnusableSecret(ValueError):
    """The file cannot be used; the message never quotes its content."""


class SecretFiles(PydanticBaseSettingsSource):
    """A source of settings that reads the files which ``…_FILE`` variables name."""

    def get_field_value(
        self,
        field: FieldInfo,  # noqa: ARG002  # of the base class
        field_name: str,
    ) -> tuple[Any, str, bool]:
        """The secret in the named file, or None without one; see the base class."""
        variable = _variable(self.settings_cls, field_name)
        from_file = os.environ.get(f"{variable}_FILE")
        return named_secret(variable, os.environ) if from_file else None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """All secrets from files.

        Raises:
            ValidationError: a file cannot be used, or the secret is also set directly.
        """
        found: dict[str, Any] = {}
        problems: list[InitErrorDetails] = []
        for name in fields(self.settings_cls):
            try:
                value, _, _ = self.get_field_value(self.settings_cls.model_fields[name], name)
            except UnusableSecret as problem:
                error = PydanticCustomError("secret_file", "{problem}", {"problem": str(problem)})
                problems.append(InitErrorDetails(type=error, loc=(name + SUFFIX,), input=None))
                continue
            if value is not None:
                found[name] = value
        if problems:
            raise ValidationError.from_exception_data(self.settings_cls.__name__, problems)
        return found


def fields(settings: type[BaseSettings]) -> Iterator[str]:
    """The names of the settings that can be read from a file."""
    for name, info in settings.model_fields.items():
        is_secret = SecretStr in (info.annotation, *get_args(info.annotation))
        if is_secret and name + SUFFIX not in settings.model_fields:
            yield name


def variables(settings: type[BaseSettings]) -> dict[str, str]:
    """The environment variable that names the file of each secret setting, by setting."""
    return {name: _variable(settings, name + SUFFIX) for name in fields(settings)}


def named_secret(variable: str, environment: Mapping[str, str]) -> str | None:
    """The secret in a variable, or in the file that the variable ``…_FILE`` names.

    Empty variables count as not set: compose files pass them.

    Raises:
        UnusableSecret: both are set, or the file cannot be used.
    """
    direct, file = environment.get(variable), environment.get(f"{variable}_FILE")
    if direct and file:
        raise UnusableSecret(f"{variable} is set as well: remove one of them")
    return read_secret(Path(file)) if file else direct


def read_secret(file: Path) -> str:
    """The text of a file without trailing line breaks.

    Raises:
        UnusableSecret: the file cannot be read, is empty, or is not a secret's size or encoding.
    """
    try:
        with file.open("rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
        secret = raw.decode("utf-8").rstrip("\r\n")
    except OSError as problem:
        raise UnusableSecret(f"{file} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise UnusableSecret(f"{file} is not UTF-8") from None
    if len(raw) > MOST_BYTES:
        raise UnusableSecret(f"{file} is larger than {MOST_BYTES} bytes")
    if not secret.strip():
        raise UnusableSecret(f"{file} is empty")
    return secret


def _variable(settings: type[BaseSettings], name: str) -> str:
    return f"{settings.model_config.get('env_prefix', '')}{name}".upper()
