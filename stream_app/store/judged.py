"""What people judge: a turn with what the model said of it, head by head, without its text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS
from stream_app.core.heads import LEVELS
from stream_app.errors import RapportError
from stream_app.store.reading.scope import Scope
from stream_app.store.tables import bundles, turn_scores, turns


class NotThere(RapportError):
    """There is nothing of this name that the person may see."""


class DoesNotFit(RapportError):
    """A value that the head does not have, or a head that the turn does not have."""


class NotNow(RapportError):
    """As things stand this cannot be done (any more)."""


@dataclass(frozen=True, slots=True)
class Head:
    """What a head can say; a judgement is the index of one of the ``labels``.

    ``ordered``: the labels are steps of one scale (levels), so that being one step apart is less
    than being two apart.
    """

    name: str
    labels: tuple[str, ...]
    ordered: bool
    roles: frozenset[Role]

    def said(self, score: Mapping[Any, Any]) -> int | None:
        """What the model said in a row of ``turn_scores``; None if it abstained or was not asked.

        The most probable label; a level as it was decided; yes from one half on.
        """
        if self.name in score["abstained"]:
            return None
        if self.name in score["perceived"]:
            return int(score["perceived"][self.name] >= 0.5)
        part = score["expressed"].get(self.name, score["client"].get(self.name))
        if not isinstance(part, Mapping):
            return None
        if "level" in part:
            return int(part["level"])
        known = {label: part[label] for label in self.labels if label in part}
        return self.labels.index(max(known, key=known.__getitem__)) if known else None


@dataclass(frozen=True, slots=True)
class JudgedTurn:
    """One turn under the bundle that is shown for it; ``said``: by head, without abstained ones."""

    session_id: str
    seq: int
    role: Role
    speaker: str
    bundle: str
    heads: dict[str, Head]
    said: dict[str, int]

    def head(self, name: str, value: int | None) -> Head:
        """The head, if the turn has it and it has this value.

        Raises:
            DoesNotFit: not so.
        """
        head = self.heads.get(name)
        if head is None or self.role not in head.roles:
            raise DoesNotFit(f"a turn of the {self.role.value} has no head of this name")
        if value is not None and not 0 <= value < len(head.labels):
            raise DoesNotFit(f"{name} has the values 0 to {len(head.labels) - 1}")
        return head


def heads(connection: sa.Connection, bundle: str) -> dict[str, Head]:
    """The heads of a bundle by name; the three mechanisms are always among them."""
    counsellor = frozenset({Role.COUNSELLOR})
    found = {name: Head(name, LEVELS, True, counsellor) for name in MECHANISMS}
    manifest = connection.scalar(sa.select(bundles.c.manifest).where(bundles.c.bundle == bundle))
    for spec in (manifest or {}).get("heads", ()):
        found[spec["name"]] = Head(
            name=spec["name"],
            labels=tuple(spec["labels"]),
            ordered=spec["kind"] == "level",
            roles=frozenset(Role(role) for role in spec["roles"]),
        )
    return found


def judged_turn(connection: sa.Connection, scope: Scope, session_id: str, seq: int) -> JudgedTurn:
    """A turn with its best score: of the newest bundle, final before provisional.

    Raises:
        NotThere: there is none that may be seen.
    """
    score = turn_scores
    query = (
        sa.select(score, turns.c.speaker)
        .join(turns, (turns.c.session_id == score.c.session_id) & (turns.c.seq == score.c.seq))
        .where(
            score.c.session_id == session_id,
            score.c.seq == seq,
            *scope.conditions(score.c.session_id),
        )
        .order_by(score.c.bundle.desc(), score.c.stage)
        .limit(1)
    )
    row = connection.execute(query).mappings().first()
    if row is None:
        raise NotThere("there is no such turn with a score")
    known = heads(connection, row["bundle"])
    said = {name: value for name, head in known.items() if (value := head.said(row)) is not None}
    return JudgedTurn(
        session_id, seq, Role(row["role"]), row["speaker"], row["bundle"], known, said
    )
