"""A platform with ended sessions, supervisors who rate them by a rule, and the bundle's folder."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import sqlalchemy as sa

from stream_app.contracts.scores import MECHANISMS
from stream_app.inference.bundles.bundle import MANIFEST
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from stream_app.store.work import ratings
from stream_app.store.work.ratings import Judgement
from tests.fakes import FakeScorer
from tests.inference.test_bundle_folder import FILES, manifest
from tests.store import batches, judging

HEAD: Final = MECHANISMS[0]
TURNS: Final = 12
COUNSELLORS: Final = 8

Rule = Callable[[int, random.Random], int]
"""What a supervisor says of a turn, by the model's level."""


def agree(level: int, rng: random.Random) -> int:
    """As sure as the fake scorer's probabilities are right: 0.8 for its level."""
    return level if rng.random() < 0.8 else rng.choice([one for one in range(3) if one != level])


def strict(level: int, rng: random.Random) -> int:
    """One level less than the model, mostly."""
    return agree(max(0, level - 1), rng)


def bundle_folder(path: Path) -> Path:
    """A bundle with the id of the fake scorer; its graphs are no graphs."""
    path.mkdir(parents=True)
    for name, raw in FILES.items():
        (path / name).write_bytes(raw)
    head = {"dimension": "expressed", "kind": "level", "roles": ["counsellor"]}
    content: dict[str, Any] = {
        **manifest(),
        "name": "fake",
        "heads": [
            {"name": name, "labels": ["none", "weak", "strong"], **head} for name in MECHANISMS
        ],
        "empathy": msgspec.to_builtins(FakeScorer.empathy),
        "outcomes": msgspec.to_builtins(FakeScorer.outcomes),
        "an_unknown_field": 7,
    }
    (path / MANIFEST).write_text(json.dumps(content), "utf-8")
    (path / "MODEL_CARD.md").write_text("# the parent's card\n", "utf-8")
    return path


def fill(store: Store, sessions: int = 40, rule: Rule = strict, version: str | None = "v1") -> None:
    """Commit ended sessions of eight counsellors, all of whose turns supervisors have rated."""
    rng = random.Random(7)
    for number in range(sessions):
        name = f"s-{number:03}"
        extra = {"consent_version": version} if version else {}
        events = [
            batches.turn(
                seq,
                session_id=name,
                team="north",
                domain="peer-support",
                speaker_id=f"c{number % COUNSELLORS}@example.org" if seq % 2 else f"client {name}",
                text=f"Turn {seq} of {name}, spoken for nobody but this test.",
                **extra,
            )
            for seq in range(TURNS)
        ]
        rating = batches.outcome(session_id=name, value=1.0 + rng.randrange(5))
        ended = batches.end(session_id=name)
        store.commit(batches.process([*events, ended, rating]))
    rate_all(store, rule, rng)


def rate_all(store: Store, rule: Rule, rng: random.Random) -> None:
    """Rate the final score of every counsellor turn: two supervisors, a half each."""
    score = tables.turn_scores
    query = (
        sa.select(score.c.session_id, score.c.seq, score.c[HEAD])
        .where(score.c.role == "counsellor", score.c.stage == "final")
        .order_by(score.c.session_id, score.c.seq)
    )
    with store.reading() as connection:
        found = connection.execute(query).all()
    given = [Judgement(row[0], row[1], HEAD, rule(row[2], rng)) for row in found]
    for name, part in (("sue", given[::2]), ("ann", given[1::2])):
        person = judging.supervisor(store, name)
        ratings.rate(store, person.scope, person.name, part)
