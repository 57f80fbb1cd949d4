"""Ratings that supervisors gave in the console, with the scores of the bundle that they rated.

Ratings given beside the visible score agree with it more than blind ones of calibration samples, so
only blind ratings count by default.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from models.agreement.ratings import Coder, Rating, Scale
from stream_app import bootstrap
from stream_app.contracts.scores import MECHANISMS
from stream_app.errors import RapportError
from stream_app.settings import Settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.sessions import bundles
from stream_app.store.sessions.scored_turns import ScoredHead
from stream_app.store.stream.repository import Store
from stream_app.store.work.agreement import RatedTurn, rated_turns

RAPPORT: Final = Coder("rapport", "rapport")


def read_database(
    settings: Settings, bundle: str | None, heads: Sequence[str] | None, *, blind_only: bool
) -> tuple[list[Rating], dict[str, Scale]]:
    """As `read`, from the configured database; the newest bundle, the mechanisms by default.

    Raises:
        RapportError: the database cannot be opened, or no such bundle has scored.
    """
    store = bootstrap.store(settings)
    try:
        known = [row.bundle for row in bundles.find(store)]
        if not known or (bundle is not None and bundle not in known):
            raise RapportError(
                f"no such bundle has scored; there are: {', '.join(known) or 'none'}"
            )
        audit.record(
            store, audit.COMMAND_LINE, AuditAction.READ_STATISTICS, detail="models.agreement"
        )
        return read(store, bundle or known[0], heads or MECHANISMS, blind_only=blind_only)
    finally:
        store.close()


def read(
    store: Store, bundle: str, heads: Sequence[str], *, blind_only: bool
) -> tuple[list[Rating], dict[str, Scale]]:
    """The ratings of these heads with the bundle's final scores, and the scale of each head."""
    found = rated_turns(store, bundle, heads)
    scales = {head.name: Scale(head.labels, head.ordered) for head in found}
    return [
        rating
        for head, turns in found.items()
        for turn in turns
        for rating in _ratings(head, turn, blind_only)
    ], scales


def _ratings(head: ScoredHead, turn: RatedTurn, blind_only: bool) -> Iterator[Rating]:
    session, seq = turn.place
    people = list(zip(turn.raters, turn.people, strict=True))
    values = [
        (Coder(f"account {name}", "expert"), value)
        for name, value in (people[: turn.blind] if blind_only else people)
    ]
    if turn.model is not None:
        values.append((RAPPORT, turn.model))
    for coder, value in values:
        yield Rating(session, str(seq), coder, head.name, head.labels[value])
