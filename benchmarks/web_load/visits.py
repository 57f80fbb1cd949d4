"""The kinds of pages that people open in the console, and how often each role does."""

import random
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from stream_app.store.accounts.roles import PersonRole

FRAGMENTS: Final = ("session, refreshed", "one turn", "card of the wall")
"""Requests of pages that update themselves, which nobody clicks."""
WEIGHTS: Final[Mapping[PersonRole, Mapping[str, int]]] = {
    PersonRole.SUPERVISOR: {
        "wall": 12,
        "inbox": 15,
        "session": 25,
        "past sessions": 8,
        "search": 6,
        "analytics": 5,
        "counsellors": 4,
        "reviews": 5,
        "API: sessions": 6,
        "API: alerts": 6,
        "API: turns": 4,
        "API: me": 4,
    },
    PersonRole.COUNSELLOR: {"own page": 6, "past sessions": 4, "development": 2},
    PersonRole.ANALYST: {"analytics": 6, "past sessions": 3, "API: sessions": 4},
    PersonRole.ADMIN: {"administration": 3, "audit trail": 2},
}
PEOPLE: Final[Mapping[PersonRole, int]] = {
    PersonRole.SUPERVISOR: 120,
    PersonRole.COUNSELLOR: 60,
    PersonRole.ANALYST: 15,
    PersonRole.ADMIN: 5,
}
"""Number of people of each role, of 200."""


class Visitor(Struct, frozen=True):
    """A signed-in person; ``sessions``: those that this person looks at."""

    name: str
    role: str
    cookie: str
    sessions: Sequence[str]


class Visit(Struct, frozen=True):
    """One request; ``at``: seconds from the start."""

    at: float
    kind: str
    path: str
    cookie: str


class Stream(Struct, frozen=True):
    """A live stream that stays open."""

    path: str
    cookie: str


def plan(
    visitors: Sequence[Visitor], seconds: float, think: float, fragments: float, seed: int
) -> list[Visit]:
    """Everybody's clicks, in order.

    Everyone clicks as a Poisson process with ``think`` seconds between clicks on average, however
    long the answers take: an open loop. ``fragments``: requests of open pages per second.
    """
    chance = random.Random(seed)
    found = []
    for visitor in visitors:
        kinds = WEIGHTS[PersonRole(visitor.role)]
        at = chance.expovariate(1 / think)
        while at < seconds:
            (kind,) = chance.choices(list(kinds), list(kinds.values()))
            found.append(_visit(at, kind, visitor, chance))
            at += chance.expovariate(1 / think)
    readers = [one for one in visitors if one.role == PersonRole.SUPERVISOR.value]
    at = chance.expovariate(fragments) if fragments else seconds
    while at < seconds:
        found.append(_visit(at, chance.choice(FRAGMENTS), chance.choice(readers), chance))
        at += chance.expovariate(fragments)
    return sorted(found, key=lambda visit: visit.at)


def of_kind(kind: str, visitor: Visitor, number: int) -> Visit:
    """One visit of this kind; ``number`` chooses session and turn."""
    return _visit(0.0, kind, visitor, random.Random(number))


def _visit(at: float, kind: str, visitor: Visitor, chance: random.Random) -> Visit:
    session = quote(chance.choice(visitor.sessions), safe="") if visitor.sessions else ""
    seq = chance.randrange(8)
    paths = {
        "wall": "/",
        "inbox": "/alerts",
        "session": f"/sessions/{session}",
        "session, refreshed": f"/sessions/{session}/now",
        "one turn": f"/sessions/{session}/turns/{seq}",
        "card of the wall": f"/sessions/{session}/card",
        "past sessions": "/sessions",
        "search": f"/sessions?search={session[-4:]}",
        "analytics": "/analytics",
        "counsellors": "/counsellors",
        "reviews": "/reviews",
        "own page": "/me",
        "development": "/me/development",
        "administration": "/admin",
        "audit trail": "/admin/audit",
        "API: sessions": "/api/v1/sessions?limit=50",
        "API: alerts": "/api/v1/alerts",
        "API: turns": f"/api/v1/sessions/{session}/turns",
        "API: me": "/api/v1/me",
    }
    return Visit(at, kind, paths[kind], visitor.cookie)
