"""Sends what importers find to ``rapport web``, or writes it as JSON lines."""

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Final

import httpx
import msgspec
from msgspec import UNSET, Struct, structs

from stream_app.client import AsyncRapportClient, NewTurn, RapportClient
from stream_app.client.events import Sendable
from stream_app.contracts.events import Turn
from stream_app.importers.imported import ImportRefused, Item, People, Report, Skipped
from stream_app.importers.matrix_bridge import Bridge

URL: Final = "RAPPORT_URL"
TOKEN: Final = "RAPPORT_TOKEN"  # noqa: S105  # the name of a variable


class Imported(Struct, frozen=True):
    """Counts of an import; ``refused``: events that the service did not take."""

    sessions: int
    turns: int
    refused: int


def client() -> RapportClient:
    """The client of the service that the environment names.

    Raises:
        ImportRefused: a variable is missing.
    """
    return RapportClient(*_variables(URL, TOKEN))


def _variables(*names: str) -> tuple[str, ...]:
    """Values of environment variables.

    Raises:
        ImportRefused: one is missing.
    """
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        also = "; or write a file with --out" if URL in names else ""
        raise ImportRefused(f"set {' and '.join(missing)} in the environment{also}")
    return tuple(os.environ[name] for name in names)


def events_in(items: Iterable[Item], report: Report) -> Iterator[Sendable]:
    """The events; what is left out is reported."""
    for item in items:
        if isinstance(item, Skipped):
            report(item)
        else:
            yield item


def send(rapport: RapportClient, events: Sequence[Sendable], key: str, report: Report) -> Imported:
    """Send events as one import: with the same key again, it adds nothing."""
    refused = 0
    for event, result in zip(events, rapport.send(*events, key=key), strict=True):
        if not result.accepted:
            refused += 1
            place = f"event {result.index + 1} of {event.session_id}"
            report(Skipped(place, f"refused ({result.code}): {result.detail}"))
    return _counted(events, refused)


def write(events: Sequence[Sendable], out: IO[bytes]) -> Imported:
    """Write events as JSON lines for ``rapport score``; turns get the numbers that they lack."""
    numbers: Counter[str] = Counter()
    for event in events:
        numbered = event
        if isinstance(event, NewTurn):
            if event.seq is UNSET:
                numbered = structs.replace(event, seq=numbers[event.session_id])
            numbers[event.session_id] += 1
        out.write(msgspec.json.encode(numbered) + b"\n")
    return _counted(events, 0)


def follow_matrix(position: Path, people: People, report: Report) -> None:
    """Run the bridge of Matrix until the process is stopped.

    Raises:
        ImportRefused: a variable is missing, or Matrix refuses the token.
    """
    url, token = _variables("MATRIX_URL", "MATRIX_TOKEN")
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, headers=headers, timeout=60) as server, client() as rapport:
        try:
            bridge = Bridge(server, rapport, position, people, report)
        except (httpx.HTTPError, ValueError, KeyError) as problem:
            raise ImportRefused(
                f"Matrix does not say whose token MATRIX_TOKEN is ({type(problem).__name__}): "
                "check it and MATRIX_URL"
            ) from None
        bridge.run()


def receive_webhooks(host: str, port: int, url: str | None, people: People, report: Report) -> None:
    """Serve the receiver of webhooks until the process is stopped.

    Raises:
        ImportRefused: no service has a secret.
    """
    import uvicorn  # noqa: PLC0415  # of the extra `web`

    from stream_app.importers import webhooks  # noqa: PLC0415

    secrets = {
        name: secret
        for name in webhooks.DESKS
        if (secret := os.environ.get(f"{name.upper()}_SECRET"))
    }
    if not secrets:
        names = ", ".join(f"{name.upper()}_SECRET" for name in webhooks.DESKS)
        raise ImportRefused(f"set the secret of at least one service: {names}")
    rapport = AsyncRapportClient(*_variables(URL, TOKEN))
    of_all = dict.fromkeys(webhooks.DESKS, people)
    app = webhooks.create(rapport, secrets, report, of_all, url)
    uvicorn.run(app, host=host, port=port, access_log=False, server_header=False)


def pairs(options: Sequence[str], name: str) -> dict[str, str]:
    """Options of the form ``SPEAKER=VALUE``.

    Raises:
        ImportRefused: one has another form.

    >>> pairs(["Anna = counsellor", "a=b=client"], "--role")
    {'Anna': 'counsellor', 'a=b': 'client'}
    """
    found = {}
    for option in options:
        speaker, equals, value = option.rpartition("=")
        if not equals or not speaker.strip() or not value.strip():
            raise ImportRefused(f"{name} needs SPEAKER=VALUE, for example {name} 'Anna=counsellor'")
        found[speaker.strip()] = value.strip()
    return found


def key_of(file: Path, *more: str) -> str:
    """The idempotency key of a file: sent again, it adds nothing."""
    content = hashlib.sha256("\0".join(more).encode() + b"\0" + file.read_bytes())
    return f"import {content.hexdigest()[:32]}"


def _counted(events: Sequence[Sendable], refused: int) -> Imported:
    turns = sum(isinstance(event, NewTurn | Turn) for event in events)
    return Imported(len({event.session_id for event in events}), turns, refused)
