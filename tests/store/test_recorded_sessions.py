"""Stored sessions give the alerts again that they had, without text."""

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from stream_app.contracts.scores import Alert
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.pipeline.recorded_session import NotReproducible, replay
from stream_app.core.rules.rules import RuleSet
from stream_app.core.session.approaches import Approaches
from stream_app.core.session.environment import Policy
from stream_app.core.session.session_state import Versioned
from stream_app.store.database import tables
from stream_app.store.sessions import recorded_sessions
from stream_app.store.sessions.scope import ALL_SESSIONS, Scope
from stream_app.store.stream.repository import Store
from tests.rule_texts import ALL, EAGER, risk_rules
from tests.store import databases
from tests.store.batches import BUNDLE, MANIFEST, SCORER, end, received, turn
from tests.store.databases import open_store

WINDOW = WindowPolicy(3, 3, 4, timedelta(seconds=30))
IDLE = timedelta(minutes=30)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(databases.sqlite(tmp_path / "rapport.db"))
    opened.prepare(BUNDLE, "0" * 64, MANIFEST, True)
    yield opened
    opened.close()


def live(store: Store, events: list[bytes], rules: RuleSet = ALL, batch: int = 3) -> list[Alert]:
    """The alerts of a live run in batches, which is stored."""
    core = Pipeline(SCORER, Policy(WINDOW, rules))
    states: dict[str, Versioned] = {}
    found: list[Alert] = []
    for start in range(0, len(events), batch):
        result = core.process(received(events[start : start + batch]), states)
        store.commit(result)
        found += result.alerts
    return found


def again(store: Store, rules: RuleSet = ALL, session_id: str = "s") -> list[Alert]:
    """The alerts of a replay from the store."""
    [session] = [
        each
        for each in recorded_sessions.ended(store, ALL_SESSIONS, 10)
        if each.session_id == session_id
    ]
    recorded = recorded_sessions.read(store, session, Approaches(), {})
    policy = Policy(WINDOW, rules, require_consent=False)
    return replay(recorded, policy, recorded_sessions.models(store)[BUNDLE], IDLE)[0]


def facts(seq: int) -> dict[str, Any]:
    return {"seq": seq, "team": "north", "domain": "peer-support", "channel": "web"}


def test_a_replay_gives_the_live_alerts_with_values_and_identities(store: Store) -> None:
    for number in range(6):
        name = f"s{number}"
        words = [
            turn(**facts(seq), session_id=name, text=f"{name} {seq}! " * (seq % 5 + 1))
            for seq in range(26)
        ]
        alerts = live(store, [*words, end(session_id=name)])
        assert len(alerts) > 4
        assert again(store, session_id=name) == alerts


def test_missing_and_late_turns_are_replayed_where_they_arrived(store: Store) -> None:
    order = [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 4, 11, 12, 13, 15, 16, 17, 18, 19, 20, 21]
    events = [turn(**facts(seq)) for seq in order]
    alerts = live(store, [*events, end()], batch=1)
    with store.reading() as connection:
        late = connection.scalars(sa.select(tables.turns.c.seq).where(tables.turns.c.late)).all()
    assert late == [4]
    assert again(store) == alerts


def test_bots_and_a_hand_over_are_replayed(store: Store) -> None:
    people = {"system": "bot", "counsellor": "ann"}
    roles = ("client", "system", "counsellor")
    events = [
        turn(
            **facts(seq),
            role=roles[seq % 3],
            speaker_id="ben" if seq > 22 and seq % 3 == 2 else people.get(roles[seq % 3], "c"),
        )
        for seq in range(40)
    ]
    alerts = live(store, [*events, end()], EAGER)
    assert any(alert.reason == "Another counsellor speaks now." for alert in alerts)
    assert again(store, EAGER) == alerts


def test_a_session_of_a_group_is_not_replayed(store: Store) -> None:
    live(store, [turn(**facts(seq), speaker_id=f"p{seq}") for seq in range(4)] + [end()])
    with pytest.raises(NotReproducible, match="several clients"):
        again(store)


def test_a_turn_that_was_refused_and_sent_again_can_be_replayed(store: Store) -> None:
    order = [0, 1, 2, 3, 4, 5, 4, 6, 7, 8, 9, 10, 11, 12, 13]
    events = [turn(**facts(seq)) for seq in order]
    events[4] = turn(**facts(4), text="")
    live(store, [*events, end()], batch=1)
    with store.reading() as connection:
        late = connection.scalars(sa.select(tables.turns.c.seq).where(tables.turns.c.late)).all()
    assert late == [4]
    assert again(store)


def test_text_that_was_purged_and_a_state_that_expired_do_not_matter(store: Store) -> None:
    alerts = live(store, [*(turn(**facts(seq)) for seq in range(20)), end()])
    with store.transaction() as connection:
        connection.execute(sa.update(tables.turns).values(text=None))
        connection.execute(sa.delete(tables.session_states))
        connection.execute(sa.delete(tables.window_turns))
    assert again(store) == alerts


def test_a_session_without_all_scores_is_refused(store: Store) -> None:
    live(store, [*(turn(**facts(seq)) for seq in range(8)), end()])
    with store.transaction() as connection:
        connection.execute(sa.delete(tables.turn_scores).where(tables.turn_scores.c.seq == 3))
    with pytest.raises(NotReproducible, match="turn 3 has no provisional score"):
        again(store)


def test_withheld_turns_are_refused_and_open_sessions_are_not_listed(store: Store) -> None:
    live(store, [turn(0, consent=False), *(turn(seq) for seq in range(1, 8)), end()])
    live(store, [turn(0, session_id="open")])
    [found] = recorded_sessions.ended(store, ALL_SESSIONS, 10)
    assert found.session_id == "s"
    with pytest.raises(NotReproducible, match="withheld"):
        recorded_sessions.read(store, found, Approaches(), {})


def test_only_sessions_of_the_scope_are_listed_newest_first(store: Store) -> None:
    for number, team in enumerate(("north", "south", "north")):
        name = f"s{number}"
        at = {"occurred_at": f"2026-01-0{number + 1}T10:00:00Z"}
        live(store, [turn(0, session_id=name, team=team, **at), end(session_id=name)])
    found = recorded_sessions.ended(store, Scope(team="north"), 10)
    assert [each.session_id for each in found] == ["s2", "s0"]
    assert len(recorded_sessions.ended(store, ALL_SESSIONS, 2)) == 2


def test_other_rules_give_what_they_would_have_given_live(store: Store, tmp_path: Path) -> None:
    chance = random.Random(7)
    texts = [f"{chance.random()} " * chance.randrange(1, 9) for _ in range(24)]
    events = [*(turn(**facts(seq), text=text) for seq, text in enumerate(texts)), end()]
    live(store, events, ALL)
    other = open_store(databases.sqlite(tmp_path / "other.db"))
    other.prepare(BUNDLE, "0" * 64, MANIFEST, True)
    draft = risk_rules(0.01, 0.005, 1, 0)
    expected = live(other, events, draft)
    other.close()
    assert expected
    assert again(store, draft) == expected
