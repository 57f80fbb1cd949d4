"""The place of a session's index among comparable sessions; none if they are no reference."""

from collections.abc import Sequence
from typing import Any

import pytest
import sqlalchemy as sa

from stream_app.core.measures.empathy import ENOUGH_SESSIONS
from stream_app.store.database import tables
from stream_app.store.sessions import sessions
from stream_app.store.sessions.comparable import Place, place
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store
from tests.store import batches

SPREAD = [n / 100 for n in range(20, 20 + ENOUGH_SESSIONS)]
ABOUT = {"domain": "counselling", "lang": "en"}


def ended(store: Store, indices: Sequence[float], **facts: str) -> None:
    """Ended sessions with these indices: copies of a scored one."""
    batch = batches.process(
        [
            *(batches.turn(seq, session_id="like", **{**ABOUT, **facts}) for seq in range(4)),
            batches.end(session_id="like"),
        ]
    )
    store.commit(batch)
    with store.transaction() as connection:
        for table, changed in ((tables.sessions, False), (tables.session_scores, True)):
            of_one = table.c.session_id == "like"
            row: dict[str, Any] = dict(
                connection.execute(sa.select(table).where(of_one)).mappings().one()
            )
            connection.execute(sa.delete(table).where(of_one))
            for n, index in enumerate(indices):
                row |= {"session_id": f"{facts} {n}"} | (
                    {"empathy_index": index} if changed else {}
                )
                connection.execute(sa.insert(table).values(row))


def place_of(store: Store, index: float, **facts: str) -> Place | None:
    store.commit(
        batches.process(
            [batches.turn(seq, session_id="mine", **{**ABOUT, **facts}) for seq in range(4)]
        )
    )
    scores = tables.session_scores
    with store.transaction() as connection:
        mine = sa.update(scores).where(scores.c.session_id == "mine")
        connection.execute(mine.values(empathy_index=index))
    card = sessions.one(store, ALL_SESSIONS, "mine")
    assert card is not None
    return place(store, card)


def test_the_place_is_the_share_of_sessions_with_a_lower_index(store: Store) -> None:
    ended(store, SPREAD)
    assert place_of(store, 0.3) == Place(ENOUGH_SESSIONS, 10 / ENOUGH_SESSIONS)


@pytest.mark.parametrize(
    ("indices", "facts"),
    [
        (SPREAD[1:], {}),
        ([0.3, 0.305] * ENOUGH_SESSIONS, {}),
        (SPREAD, {"domain": "peer-support"}),
        (SPREAD, {"lang": "en-GB"}),
    ],
    ids=["too few", "all alike", "another domain", "another language"],
)
def test_other_sessions_are_no_reference(
    store: Store, indices: Sequence[float], facts: dict[str, str]
) -> None:
    ended(store, indices, **facts)
    assert place_of(store, 0.3) is None
