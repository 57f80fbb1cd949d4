"""Reads the file of notification targets, rotas and escalation; errors have a line number.

Secrets can be written as ``${NAME}`` to be read from the environment, or from the file that
``NAME_FILE`` names, so that the file itself contains no secrets. Error messages never quote an
address or a secret.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import time, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from zoneinfo import ZoneInfo

from msgspec import Struct
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    HttpUrl,
    NaiveDatetime,
    SecretStr,
    Tag,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from stream_app.errors import RapportError
from stream_app.notifications.apprise_channel import service
from stream_app.notifications.connection_guard import parse_allowed
from stream_app.notifications.escalation import Escalation, EscalationPath, EscalationStep
from stream_app.notifications.rate_limit import QuietHours, RateLimit
from stream_app.notifications.rota import WEEKDAYS, DatedShift, Rota, WeeklyShift
from stream_app.notifications.webhook import signer
from stream_app.secret_files import UnusableSecret, named_secret
from stream_app.store.alerts.deliveries import DueAlert

DEFAULT_TIMEOUT: Final = 20.0
MAX_TIMEOUT: Final = 60.0
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours"}
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_QUOTED: Final = re.compile(r"(['\"]).*?\1")
_Location = tuple[int | str, ...]
MAX_STEPS: Final = 20
_WEEKLY: Final = "weekly shift"
_DATED: Final = "dated shift"
_TAGS: Final = (_WEEKLY, _DATED)
"""Pydantic puts them into the place of an error; the file does not have them."""
_LEFT_OUT: Final = ("targets", *_TAGS)


def _duration(value: object) -> timedelta:
    match = re.fullmatch(r"([1-9][0-9]*)\s*([smh])", str(value).strip())
    if match is None:
        raise PydanticCustomError("duration", "not a duration like 90s, 30m or 1h")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _zone(value: object) -> ZoneInfo:
    try:
        return ZoneInfo(str(value))
    except (ValueError, OSError, KeyError):
        raise PydanticCustomError("zone", "not a time zone like Europe/London") from None


def _from_environment(value: object, info: ValidationInfo) -> object:
    if not isinstance(value, str):
        return value
    environment: Mapping[str, str] = (info.context or {})["environment"]

    def found(match: re.Match[str]) -> str:
        try:
            value = named_secret(match[1], environment)
        except UnusableSecret as problem:
            raise PydanticCustomError("variable", "{problem}", {"problem": str(problem)}) from None
        if not value:
            raise PydanticCustomError(
                "variable", "environment variable {name} is not set", {"name": match[1]}
            )
        return value

    return _VARIABLE.sub(found, value)


Duration = Annotated[timedelta, BeforeValidator(_duration)]
Secret = Annotated[SecretStr, BeforeValidator(_from_environment)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
Names = Annotated[list[str], Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, hide_input_in_errors=True
    )


class Quiet(_Part):
    """Quiet hours, in which alerts are held for a digest."""

    begin: time = Field(alias="from")
    end: time = Field(alias="to")
    zone: Annotated[ZoneInfo, BeforeValidator(_zone)]


class Chosen(_Part):
    """Filters of alerts, combined with AND."""

    severities: (
        Annotated[list[Literal["info", "warning", "critical"]], Field(min_length=1)] | None
    ) = None
    rules: Names | None = None
    teams: Names | None = None
    domains: Names | None = None
    labels: dict[str, str] | None = None

    def wants(self, alert: DueAlert) -> bool:
        """Whether an alert passes all filters."""
        return (
            _matches(alert.severity, self.severities)
            and _matches(alert.rule, self.rules)
            and _matches(alert.team, self.teams)
            and _matches(alert.domain, self.domains)
            and all(alert.labels.get(name) == value for name, value in (self.labels or {}).items())
        )


class Target(Chosen):
    """A notification target: its address, filters and rate limit.

    ``escalation_only``: it is not notified of alerts, only of escalations.
    """

    name: Name
    kind: Literal["webhook", "apprise"]
    url: Secret
    secret: Secret | None = None
    supervisor: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    escalation_only: bool = False
    hourly_cap: Annotated[int, Field(ge=1)] | None = None
    digest_every: Duration | None = None
    critical_passes: bool = False
    quiet_hours: Quiet | None = None
    timeout: Annotated[float, Field(gt=0.0, le=MAX_TIMEOUT)] = DEFAULT_TIMEOUT
    allow: list[str] = []

    @field_validator("allow")
    @classmethod
    def _validate_allow(cls, value: list[str]) -> list[str]:
        _check_with(parse_allowed, value)
        return value

    @field_validator("url")
    @classmethod
    def _validate_url(cls, value: SecretStr, info: ValidationInfo) -> SecretStr:
        address = value.get_secret_value()
        if info.data.get("kind") == "webhook":
            try:
                HttpUrl(address)
            except ValidationError:  # its text would quote the address
                raise PydanticCustomError("address", "not an http or https address") from None
        elif info.data.get("kind") == "apprise":
            _check_with(service, address)
        return value

    @field_validator("secret")
    @classmethod
    def _validate_secret(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is not None:
            if info.data.get("kind") == "apprise":
                raise PydanticCustomError("secret", "only webhooks have a secret")
            _check_with(signer, value.get_secret_value())
        return value

    @model_validator(mode="after")
    def _validate_limits(self) -> "Target":
        if self.digest_every is None:
            return self
        reserved = self.rate_limit.reserved_for_digests
        if self.hourly_cap is not None and reserved > self.hourly_cap:
            raise PydanticCustomError(
                "digest_every",
                "digest_every needs {reserved} digests an hour, hourly_cap allows "
                "{cap} notifications",
                {"reserved": reserved, "cap": self.hourly_cap},
            )
        return self

    @property
    def rate_limit(self) -> RateLimit:
        """The target's rate limit."""
        quiet = self.quiet_hours
        return RateLimit(
            self.hourly_cap,
            self.digest_every,
            QuietHours(quiet.begin, quiet.end, quiet.zone) if quiet else None,
            self.critical_passes,
        )


class _WeeklyShift(_Part):
    target: Name
    days: Annotated[
        list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]], Field(min_length=1)
    ]
    begin: time = Field(alias="from")
    end: time = Field(alias="to")

    @property
    def shift(self) -> WeeklyShift:
        days = frozenset(WEEKDAYS.index(day) for day in self.days)
        return WeeklyShift(self.target, days, self.begin, self.end)


class _DatedShift(_Part):
    target: Name
    begin: NaiveDatetime = Field(alias="from")
    end: NaiveDatetime = Field(alias="to")

    @model_validator(mode="after")
    def _validate_order(self) -> "_DatedShift":
        if self.end <= self.begin:
            raise PydanticCustomError("shift", "the shift ends before it begins")
        return self

    @property
    def shift(self) -> DatedShift:
        return DatedShift(self.target, self.begin, self.end)


def _kind_of_shift(value: object) -> str:
    return _WEEKLY if isinstance(value, Mapping) and "days" in value else _DATED


_Shift = Annotated[
    Annotated[_WeeklyShift, Tag(_WEEKLY)] | Annotated[_DatedShift, Tag(_DATED)],
    Discriminator(_kind_of_shift),
]


class _Rota(_Part):
    name: Name
    zone: Annotated[ZoneInfo, BeforeValidator(_zone)]
    shifts: Annotated[list[_Shift], Field(min_length=1)]


class _Step(_Part):
    after: Duration
    to: Names


class _Path(Chosen):
    steps: Annotated[list[_Step], Field(min_length=1, max_length=MAX_STEPS)]

    @field_validator("steps")
    @classmethod
    def _validate_order(cls, value: list[_Step]) -> list[_Step]:
        if any(one.after >= other.after for one, other in pairwise(value)):
            raise PydanticCustomError("steps", "each step must come later than the one before it")
        return value


class _File(_Part):
    targets: Annotated[list[Target], Field(min_length=1)]
    rotas: list[_Rota] = []
    escalation: list[_Path] = []


class Plan(Struct, frozen=True):
    """Targets of alerts, and of alerts that nobody answers."""

    targets: list[Target]
    escalation: Escalation


def read_plan(file: Path, environment: Mapping[str, str]) -> Plan:
    """Read targets, rotas and escalation from a file.

    Raises:
        RapportError: the file is invalid; one line per error, as ``file:line: description``.
    """
    content = _content(file)
    if not isinstance(content, CommentedMap):
        raise RapportError(f"{file}:1: expected `targets:` and a list below it")
    try:
        found = _File.model_validate(content, context={"environment": environment})
    except ValidationError as problem:
        errors = [
            f"{file}:{_line(content, error['loc'])}: {_message(error['loc'], error['msg'])}"
            for error in problem.errors(include_url=False, include_input=False)
        ]
        raise RapportError("\n".join(errors)) from None
    if errors := [
        f"{file}:{_line(content, place)}: {what}"
        for place, what in (*_duplicates(found), *_unknown(found))
    ]:
        raise RapportError("\n".join(errors))
    return Plan(found.targets, _escalation(found))


def _escalation(found: _File) -> Escalation:
    return Escalation(
        paths=tuple(
            EscalationPath(
                path, tuple(EscalationStep(step.after, tuple(step.to)) for step in path.steps)
            )
            for path in found.escalation
        ),
        rotas={
            rota.name: Rota(rota.name, rota.zone, tuple(each.shift for each in rota.shifts))
            for rota in found.rotas
        },
        targets=frozenset(target.name for target in found.targets),
    )


def _content(file: Path) -> object:
    try:
        return YAML(typ="rt").load(file.read_text("utf-8"))
    except OSError as problem:
        raise RapportError(f"{file} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise RapportError(f"{file} is not UTF-8") from None
    except YAMLError as problem:
        line, what = 1, "not YAML"
        if isinstance(problem, MarkedYAMLError):
            mark = problem.problem_mark or problem.context_mark
            line = mark.line + 1 if mark else 1
            if isinstance(problem, DuplicateKeyError):
                what = "duplicate key"
            elif problem.problem:
                what = f"not YAML: {_QUOTED.sub('…', problem.problem.splitlines()[0])}"
        raise RapportError(f"{file}:{line}: {what}") from None


def _unknown(found: _File) -> Iterator[tuple[_Location, str]]:
    """Names in rotas and steps that are not in the file."""
    targets = {target.name for target in found.targets}
    for index, rota in enumerate(found.rotas):
        for number, shift in enumerate(rota.shifts):
            if shift.target not in targets:
                place = ("rotas", index, "shifts", number, "target")
                yield place, f"there is no target {shift.target}"
    recipients = targets | {rota.name for rota in found.rotas}
    for index, path in enumerate(found.escalation):
        for number, step in enumerate(path.steps):
            place = ("escalation", index, "steps", number, "to")
            for name in step.to:
                if name not in recipients:
                    yield place, f"there is no target or rota {name}"
            if len(set(step.to)) < len(step.to):
                yield place, "a name is listed twice"


def _duplicates(found: _File) -> Iterator[tuple[_Location, str]]:
    names: set[str] = set()
    supervised: dict[str, str] = {}
    for index, target in enumerate(found.targets):
        if target.name in names:
            yield ("targets", index, "name"), f"duplicate name {target.name}"
        names.add(target.name)
        if target.supervisor is None:
            continue
        if target.supervisor in supervised:
            yield (
                ("targets", index, "supervisor"),
                f"{target.supervisor} already has the target {supervised[target.supervisor]}: a "
                "person has only one, because the cap applies per person",
            )
        supervised[target.supervisor] = target.name
    for index, rota in enumerate(found.rotas):
        if rota.name in names:
            yield ("rotas", index, "name"), f"duplicate name {rota.name}"
        names.add(rota.name)


def _line(content: Any, path: _Location) -> int:
    """The line of a key or item; if it is missing, of what should contain it."""
    line, node = 1, content
    for part in path:
        if part in _TAGS:
            continue
        if isinstance(node, CommentedMap) and part in node:
            line = node.lc.key(part)[0] + 1
        elif isinstance(node, CommentedSeq) and isinstance(part, int) and part < len(node):
            line = node.lc.item(part)[0] + 1
        else:
            break
        node = node[part]
    return line


def _message(path: _Location, what: str) -> str:
    """Pydantic's message, prefixed with the key; without the lists that contain it."""
    names = [part for part in path if part not in _LEFT_OUT]
    indexed = [isinstance(part, int) for part in (*names[1:], "")]
    last = len(names) - 2
    key = ".".join(
        str(part)
        for place, part in enumerate(names)
        if not isinstance(part, int) and (not indexed[place] or place == last)
    )
    what = what.replace("Extra inputs are not permitted", "unknown key")
    what = what.replace("Field required", "is missing")
    return f"{key}: {what}" if key else what


def _check_with(check: Any, value: str | list[str]) -> None:
    try:
        check(value)
    except RapportError as problem:
        raise PydanticCustomError("refused", "{what}", {"what": str(problem)}) from None


def _matches(value: str | None, wanted: list[Any] | None) -> bool:
    return wanted is None or value in wanted
