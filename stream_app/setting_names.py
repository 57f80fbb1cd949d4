"""Finds environment variables ``RAPPORT_*`` that are not settings: misspelt, or removed."""

import difflib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from stream_app import secret_files
from stream_app.settings import Settings

PREFIX: Final = "RAPPORT_"
OTHERS: Final = frozenset(
    {
        "RAPPORT_DB_PASSWORD",  # docker-compose.yml, also the next two
        "RAPPORT_PROXY_ADDRESS",
        "RAPPORT_SECRETS",
        "RAPPORT_TOKEN",  # `rapport import`, also the next one
        "RAPPORT_URL",
        "RAPPORT_SCREENSHOTS",  # the tests of the console
    }
)
"""Variables with the prefix that something else than the command reads."""

_SERVICE_LINK: Final = re.compile(r"_SERVICE_(HOST|PORT)(_\w+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_\w+)?$")
"""Kubernetes sets these for a service whose name starts with ``rapport-``."""
_IN_TARGETS: Final = re.compile(r"\$\{(\w+)\}")

_IN_GROUPS: Final = "write it into the file that RAPPORT_GROUPS names, as"
MOVED: Final[Mapping[str, str]] = {
    "APPROACHES": f"{_IN_GROUPS} `approaches`",
    "DATABASE_READ_ROLE": "the role is rapport_reader; grant it to your own",
    "DECLARE_TOPICS": "topics are created unless RAPPORT_TOPIC_PARTITIONS=0",
    "NOTIFY_ALLOW": "each target in the file of RAPPORT_NOTIFICATIONS has its own `allow`",
    "OIDC_ACCESS": f"{_IN_GROUPS} `single_sign_on.access`",
    "OIDC_ACCESS_CLAIM": f"{_IN_GROUPS} `single_sign_on.access_claim`",
    "OIDC_CREATE_ACCOUNTS": f"{_IN_GROUPS} `single_sign_on.create_accounts`",
    "OIDC_NAME_CLAIM": f"{_IN_GROUPS} `single_sign_on.name_claim`",
    "OIDC_SCOPE": f"{_IN_GROUPS} `single_sign_on.scope`",
    "OIDC_SPEAKER_CLAIM": f"{_IN_GROUPS} `single_sign_on.speaker_claim`",
    "PRESIDIO_CONFIG": "RAPPORT_REDACTOR takes the file",
    "RESTRICTED_OUTPUTS": f"{_IN_GROUPS} `restricted_outputs`",
    "WEB_SIGN_IN_HOURS": "a sign-in expires after 12 hours, or RAPPORT_WEB_IDLE_HOURS",
}
"""Removed settings by name whose value would be missed, and what to do with it."""
FIXED: Final[Mapping[str, str]] = {
    "CACHE_SESSIONS": "a worker keeps 20,000 session states in memory",
    "CUDA_DEVICE": "choose the GPU with CUDA_VISIBLE_DEVICES",
    "DATABASE_RETRY_FOR": "a worker retries a commit for 240 s before it exits",
    "EARLIEST_EVENT": "events from before 2000 are dead letters",
    "ASK_EVERY": "`rapport reviews ask` looks every 30 s",
    "ASK_TIMEOUT": "an answer may take 60 s",
    "IDLE_CHECK_EVERY": "a worker looks for idle sessions every 2 s",
    "KAFKA_FETCH_WAIT": "a broker holds a request for 50 ms at most",
    "NOTIFY_EVERY": "the notifier looks every second",
    "NOTIFY_LONGEST_WAIT": "the notifier waits 300 s at most",
    "REORDER_TURNS": "at most 4 turns wait for a missing one, none with RAPPORT_REORDER_WAIT=0",
    "TRACING": "OTEL_TRACES_EXPORTER=otlp sends traces",
    "WINDOW_AFTER": "the bundle's manifest has the window",
    "WINDOW_BEFORE": "the bundle's manifest has the window",
}
"""Removed settings by name, and what holds instead of their value."""


def are_missed(environment: Mapping[str, str]) -> bool:
    """Whether it is unsafe to go on without the values of removed settings.

    >>> are_missed({"RAPPORT_APPROACHES": "{}"})
    True
    >>> are_missed({"RAPPORT_APPROACHES": "", "APPROACHES": "of another program"})
    False
    """
    moved = {f"{PREFIX}{name}" for name in MOVED}
    return any(value and name.upper() in moved for name, value in environment.items())


def warnings(environment: Mapping[str, str]) -> list[str]:
    """One sentence for each variable that is not a setting: what to do, or the nearest name.

    Values are never quoted. Variables that the file of notification targets names are known.
    """
    known = {f"{PREFIX}{name}".upper() for name in Settings.model_fields}
    known.update(secret_files.variables(Settings).values())
    unknown = [
        name
        for name in sorted(environment)
        if name.upper().startswith(PREFIX)
        and name.upper() not in known | OTHERS
        and not _SERVICE_LINK.search(name)
    ]
    if unknown:
        named = set(_named_by_targets(environment.get("RAPPORT_NOTIFICATIONS")))
        unknown = [name for name in unknown if name not in named]
    return [_warning(name, known) for name in unknown]


def _warning(name: str, known: set[str]) -> str:
    short = name.upper().removeprefix(PREFIX)
    if (instead := MOVED.get(short) or FIXED.get(short)) is not None:
        return f"{name} is no longer a setting: {instead}; remove the variable"
    nearest = difflib.get_close_matches(name.upper(), sorted(known), 1, cutoff=0.8)
    if nearest:
        return f"{name} is not a setting; did you mean {nearest[0]}?"
    return f"{name} is not a setting; `rapport config` lists them"


def _named_by_targets(file: str | None) -> Iterator[str]:
    """The variables in the file of targets, which the notifier checks when it reads the file."""
    if not file:
        return
    try:
        text = Path(file).read_text("utf-8")
    except (OSError, ValueError):
        return
    for name in _IN_TARGETS.findall(text):
        yield name
        yield f"{name}_FILE"
