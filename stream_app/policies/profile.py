"""A policy profile, read from its file."""

from collections.abc import Iterator, Mapping
from datetime import date
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, ValidationError, model_validator

from stream_app.core.rules import yaml_file
from stream_app.core.session.restrictions import CHOICES, NOTHING, Outputs
from stream_app.errors import RapportError

FOLDER: Final = Path(__file__).parent
Setting = Literal[
    "keep_scores_days",
    "keep_text_days",
    "notifications",
    "on_withdrawal",
    "practice",
    "redact",
    "require_consent",
    "self_declared_attributes",
    "topic_days",
    "workers_told",
]
"""Settings that a profile may bound; none is a secret, as a refusal quotes the value."""
Words = Annotated[str, Field(min_length=1, max_length=1000)]


class PolicyError(RapportError):
    """A policy profile is missing, or its file is not valid."""


class Actions(Enum):
    """When a person may act on another because of a session.

    ``after-reading``: only after a logged reading of its transcript. ``none``: nothing.
    """

    FREE = "free"
    AFTER_READING = "after-reading"
    NONE = "none"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Bound(_Strict):
    """The values that a setting may have.

    >>> Bound(at_most=30).refusal(90)
    'allows at most 30'
    >>> Bound(only=["hide", "erase"]).refusal("hide")
    """

    only: bool | str | tuple[str, ...] | None = None
    at_least: int | None = None
    at_most: int | None = None
    set: bool | None = None

    @model_validator(mode="after")
    def _bounds_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("a bound needs only, at_least, at_most or set")
        return self

    def refusal(self, value: Any) -> str | None:
        """Return the allowed range, if the value is outside it."""
        shown = getattr(value, "value", value)
        if self.set is not None and self.set is (shown is None):
            return "needs it to be set" if self.set else "does not allow it"
        if self.only is not None:
            allowed = self.only if isinstance(self.only, tuple) else (self.only,)
            if shown not in allowed:
                return f"allows only {' or '.join(in_words(each) for each in allowed)}"
        if self.at_least is not None and shown < self.at_least:
            return f"allows no less than {self.at_least}"
        if self.at_most is not None and shown > self.at_most:
            return f"allows at most {self.at_most}"
        return None

    @property
    def words(self) -> str:
        """The bound in words.

        >>> Bound(at_least=183, at_most=365).words
        'from 183 to 365'
        """
        if self.set is not None:
            return "set" if self.set else "not set"
        if self.only is not None:
            allowed = self.only if isinstance(self.only, tuple) else (self.only,)
            return " or ".join(in_words(each) for each in allowed)
        if self.at_least is None:
            return f"at most {self.at_most}"
        if self.at_most is None:
            return f"at least {self.at_least}"
        return f"from {self.at_least} to {self.at_most}"


class Notices(_Strict):
    """The notices before the first turn; ``{SETTING}`` stands for a setting's value."""

    client: Words
    counsellor: Words


class Source(_Strict):
    """A text that the profile rests on; ``of``: its date."""

    title: Words
    url: HttpUrl
    of: date


class Profile(_Strict):
    """One policy profile."""

    name: str
    version: Literal[1]
    title: Words
    applies_to: Words
    restricted_outputs: tuple[Literal["client", "perceived"], ...]
    settings: dict[Setting, Bound]
    actions: Actions
    notices: Notices
    consent_version: Annotated[str, Field(min_length=1, max_length=50)]
    sources: Annotated[tuple[Source, ...], Field(min_length=1)]

    @property
    def restricted(self) -> Outputs:
        """The outputs that no session has."""
        return NOTHING.union(*(CHOICES[name] for name in self.restricted_outputs))

    @property
    def values(self) -> dict[str, bool | str]:
        """The settings to which the profile leaves one value."""
        return {
            name: bound.only
            for name, bound in self.settings.items()
            if bound.only is not None and not isinstance(bound.only, tuple)
        }

    def refusals(self, values: Mapping[str, Any]) -> Iterator[str]:
        """A sentence for each setting that contradicts the profile."""
        for setting, bound in self.settings.items():
            value = values[setting]
            if (allowed := bound.refusal(value)) is not None:
                variable = f"RAPPORT_{setting.upper()}"
                given = f"{variable}={in_words(value)}" if value is not None else f"no {variable}"
                yield f"{given} contradicts RAPPORT_POLICY={self.name}, which {allowed}"

    @property
    def headline(self) -> str:
        """Return what the profile changes for people who use the console."""
        parts = []
        if self.restricted_outputs:
            parts.append(f"{' and '.join(self.restricted_outputs)} outputs are off")
        if self.actions is Actions.AFTER_READING:
            parts.append("nobody acts on a person without having read the session")
        if self.actions is Actions.NONE:
            parts.append("nobody acts on a person because of a score")
        return "; ".join(parts) or "every output is on"

    @property
    def bounds(self) -> str:
        """The settings that it bounds, in words."""
        return ", ".join(
            f"RAPPORT_{name.upper()} {words}" for name, words in self.settings_in_words()
        )

    def settings_in_words(self) -> list[tuple[str, str]]:
        """The settings that it bounds, each with its bound in words."""
        return [(name, bound.words) for name, bound in self.settings.items()]

    def told(self, values: Mapping[str, Any]) -> Notices:
        """The notices with the settings' values."""
        return Notices(
            client=self.notices.client.format_map(values),
            counsellor=self.notices.counsellor.format_map(values),
        )


def in_words(value: Any) -> str:
    """A setting's value as one writes it in the environment."""
    shown = getattr(value, "value", value)
    return str(shown).lower() if isinstance(shown, bool) else str(shown)


def shipped() -> list[str]:
    """Names of the shipped profiles."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


@cache
def load(name: str) -> Profile:
    """A shipped profile by its name, or the one in a file.

    Raises:
        PolicyError: there is none, or the file is not valid.
    """
    path = FOLDER / f"{name}.yaml" if name in shipped() else Path(name)
    try:
        body = yaml_file.load(path.read_bytes())
    except OSError as problem:
        raise PolicyError(
            f"{name} is no profile's file ({problem.strerror}), and none of {', '.join(shipped())}"
        ) from None
    except yaml_file.Fault as fault:
        raise PolicyError(f"{path}: line {fault.line}: {fault.what}") from None
    if not isinstance(body, dict):
        raise PolicyError(f"{path}: not a mapping")
    try:
        return _checked(Profile.model_validate({"name": path.stem, **body}))
    except (ValidationError, PolicyError) as problem:
        raise PolicyError(f"{path}: {_first(problem)}") from None


def _checked(profile: Profile) -> Profile:
    """Whether the notices name settings that the profile bounds.

    Raises:
        PolicyError: a notice names something else.
    """
    bounded: dict[str, Any] = {name: 1 for name in profile.settings}  # noqa: C420
    try:
        profile.told(bounded)
    except (KeyError, ValueError, IndexError, AttributeError):
        known = ", ".join(f"{{{name}}}" for name in bounded)
        raise PolicyError(f"the notices may name {known} and have no other braces") from None
    return profile


def _first(problem: ValidationError | PolicyError) -> str:
    if isinstance(problem, PolicyError):
        return str(problem)
    error = problem.errors()[0]
    place = ".".join(str(part) for part in error["loc"])
    return f"`{place}`: {error['msg'].removeprefix('Value error, ')}"
