"""CPU time of one request of each kind, one after another, without any other load.

Made by the first person of each role: of the counsellors, the one with the most sessions.
"""

import ssl
import time
from collections.abc import Mapping
from typing import Final

import httpx

from benchmarks.web_load import cpu_use, visits
from benchmarks.web_load.visits import Visitor
from stream_app.errors import RapportError
from stream_app.store.accounts.roles import PersonRole

REPEATED: Final = 20
FIRST: Final = 3
"""Requests of each kind that are not counted: they compile statements and templates."""


def measure(
    base: str, certificate: str, visitors: list[Visitor], repeated: int = REPEATED
) -> dict[str, tuple[float, float, float]]:
    """By kind: milliseconds of CPU of the web process, and of the database; kB of the answer.

    Raises:
        RapportError: a page does not answer with success.
    """
    found: dict[str, tuple[float, float, float]] = {}
    by_role = {visitor.role: visitor for visitor in reversed(visitors)}
    tls = ssl.create_default_context(cafile=certificate)
    with httpx.Client(base_url=base, verify=tls, timeout=60.0) as client:
        for role, kinds in _kinds().items():
            visitor = by_role[role.value]
            for kind in kinds:
                if kind not in found:
                    found[kind] = _cost(client, kind, visitor, repeated)
    return found


def _cost(
    client: httpx.Client, kind: str, visitor: Visitor, repeated: int
) -> tuple[float, float, float]:
    size = 0
    before = cpu_use.seconds()
    for number in range(FIRST + repeated):
        if number == FIRST:
            before = cpu_use.seconds()
        one = visits.of_kind(kind, visitor, number)
        answer = client.get(one.path, headers={"Cookie": one.cookie})
        if answer.status_code != httpx.codes.OK:
            raise RapportError(f"{kind} answered {answer.status_code}")
        size = len(answer.content)
    time.sleep(0.05)  # the process's own work after the answer
    after = cpu_use.seconds()
    each = {part: 1000 * (after[part] - before[part]) / repeated for part in ("web", "database")}
    return round(each["web"], 1), round(each["database"], 1), round(size / 1000, 1)


def _kinds() -> Mapping[PersonRole, list[str]]:
    own = {role: list(weights) for role, weights in visits.WEIGHTS.items()}
    own[PersonRole.SUPERVISOR] += visits.FRAGMENTS
    return own
