"""Scored turns as the subject of ratings and disputes: the model's value by head, without text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS
from stream_app.core.measures.heads import LEVELS
from stream_app.errors import RapportError
from stream_app.store.database.tables import bundles, turn_scores, turns
from stream_app.store.sessions.scope import Scope


class NotFound(RapportError):
    """The item does not exist, or the person may not see it."""


class InvalidJudgement(RapportError):
    """A judgement with a head that the turn lacks, or a value that the head lacks."""


class StateConflict(RapportError):
    """The operation is not possible in the current state, for example a second decision."""


@dataclass(frozen=True, slots=True)
class ScoredHead:
    """A head that can be judged; a judgement is an index into ``labels``.

    ``ordered``: the labels are an ordinal scale (levels), so that the distance between two counts.
    ``roles``: of the turns that have the head.
    """

    name: str
    labels: tuple[str, ...]
    ordered: bool
    roles: frozenset[Role]

    def model_value(self, score: Mapping[Any, Any]) -> int | None:
        """The model's value in a row of ``turn_scores``; None if it abstained or has no such head.

        The most probable label; for levels the stored level; for binary heads yes from 0.5.
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
class ScoredTurn:
    """One turn with the scores of ``bundle``; ``model_values``: by head, without abstentions."""

    session_id: str
    seq: int
    role: Role
    speaker: str
    bundle: str
    heads: dict[str, ScoredHead]
    model_values: dict[str, int]

    def require_head(self, name: str, value: int | None) -> ScoredHead:
        """Return the head after checking that the turn has it, and that it has this value.

        Raises:
            InvalidJudgement: either is not the case.
        """
        head = self.heads.get(name)
        if head is None or self.role not in head.roles:
            raise InvalidJudgement(f"a turn of the {self.role.value} has no head of this name")
        if value is not None and not 0 <= value < len(head.labels):
            raise InvalidJudgement(f"{name} has the values 0 to {len(head.labels) - 1}")
        return head


def find_heads(
    connection: sa.Connection, bundle: str, table: sa.Table = bundles
) -> dict[str, ScoredHead]:
    """The heads of a bundle by name, always including the three mechanisms.

    ``table``: of the manifests.
    """
    counsellor = frozenset({Role.COUNSELLOR})
    found = {name: ScoredHead(name, LEVELS, True, counsellor) for name in MECHANISMS}
    manifest = connection.scalar(sa.select(table.c.manifest).where(table.c.bundle == bundle))
    for spec in (manifest or {}).get("heads", ()):
        found[spec["name"]] = ScoredHead(
            name=spec["name"],
            labels=tuple(spec["labels"]),
            ordered=spec["kind"] == "level",
            roles=frozenset(Role(role) for role in spec["roles"]),
        )
    return found


def find_scored_turn(
    connection: sa.Connection, scope: Scope, session_id: str, seq: int
) -> ScoredTurn:
    """Read a turn with its best score: of the newest bundle, final before provisional.

    Raises:
        NotFound: no such turn has a score, or ``scope`` does not include it.
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
        raise NotFound("there is no such turn with a score")
    known_heads = find_heads(connection, row["bundle"])
    values = {
        name: value
        for name, head in known_heads.items()
        if (value := head.model_value(row)) is not None
    }
    return ScoredTurn(
        session_id, seq, Role(row["role"]), row["speaker"], row["bundle"], known_heads, values
    )
