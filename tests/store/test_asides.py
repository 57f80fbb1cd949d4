"""Turns of bots and whispers: no answer, no exchange, and no page without their text."""

import sqlalchemy as sa

from stream_app.findings.feedback.loading import _counsellor_turns
from stream_app.store.database import tables
from stream_app.store.sessions import exchanges, transcripts, turn_levels
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store
from tests.store.batches import BUNDLE, end, prepare, process, turn
from tests.store.judging import NOOR
from tests.store.test_turn_levels import of_noor

SAID = ("client", "system", "counsellor", "supervisor", "counsellor", "client", "system")


def committed(store: Store) -> None:
    prepare(store)
    people = {"client": "cleo", "counsellor": NOOR, "system": "bot", "supervisor": "sue"}
    log = [turn(seq, role=role, speaker_id=people[role]) for seq, role in enumerate(SAID)]
    store.commit(process([*log, end()]))


def test_a_transcript_shows_them_without_scores(store: Store) -> None:
    committed(store)
    read = transcripts.read(store, ALL_SESSIONS, "s")
    assert tuple(each.role.value for each in read) == SAID
    assert [bool(each.scores) for each in read] == [True, False, True, False, True, True, False]
    assert all(each.text for each in read)


def test_an_exchange_is_that_of_the_people(store: Store) -> None:
    committed(store)
    found = exchanges.around(store, ALL_SESSIONS, {"s": [0]})["s"][0]
    assert (found.seq, [each.seq for each in found.answers]) == (0, [2, 4])


def test_feedback_is_about_people_alone(store: Store) -> None:
    committed(store)
    read = transcripts.read(store, ALL_SESSIONS, "s")
    turns = _counsellor_turns(read, BUNDLE, gaps=False)
    assert [[each.seq for each in of] for of in turns.values()] == [[2, 4]]


def test_they_come_between_no_client_and_answer(store: Store) -> None:
    committed(store)
    score = tables.turn_scores
    called = {"opportunity": {"no": 0.2, "yes": 0.8}}
    with store.transaction() as connection:
        connection.execute(sa.update(score).where(score.c.seq == 0).values(client=called))
    found = turn_levels.in_full(store, of_noor(store))
    assert [(each.turn.seq, each.asked) for each in found] == [(2, 0.8), (4, None)]
