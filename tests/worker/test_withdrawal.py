"""Withdrawn consent: what happens to stored rows and to messages, by setting."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from stream_app.bootstrap import worker_process
from stream_app.core.session.consent import OnWithdrawal
from stream_app.settings import Settings
from stream_app.store.alerts import alerts
from stream_app.store.alerts.alerts import AlertFilter
from stream_app.store.database import tables
from stream_app.store.lifecycle import holds, retention
from stream_app.store.sessions import sessions, transcripts
from stream_app.store.sessions.scope import ALL_SESSIONS, Scope
from stream_app.store.stream import withdrawal
from stream_app.store.stream.repository import Store
from tests.store.batches import consent, end, prepare, turn
from tests.store.reading import contents, dump, rows
from tests.worker.processors import handle, processor

Open = Callable[..., Store]
NOW = datetime(2026, 1, 6, tzinfo=UTC)
LOG = [turn(seq, session_id=name) for seq in range(9) for name in "ab"]
TOPICS = ["turn-scores", "session-scores", "alerts"]


def readable(store: Store, scope: Scope = ALL_SESSIONS) -> set[str]:
    found = sessions.find(store, scope, sessions.SessionFilter()).items
    return {card.session_id for card in found}


def apply(store: Store, setting: OnWithdrawal) -> list[int]:
    return worker_process.apply_withdrawals(Settings(on_withdrawal=setting), store, NOW)


def withdrawn(store: Store) -> Store:
    handle(processor(store), [*LOG, consent("withdrawn", session_id="a")])
    return store


def test_a_withdrawal_hides_text_scores_and_alerts(open_prepared: Open) -> None:
    store = open_prepared()
    handle(processor(store), LOG)
    assert {
        alert.session_id for alert in alerts.find(store, ALL_SESSIONS, AlertFilter()).items
    } == {"a", "b"}
    handle(processor(store), [consent("withdrawn", session_id="a")])
    assert readable(store) == {"b"}
    assert sessions.one(store, ALL_SESSIONS, "a") is None
    assert transcripts.read(store, ALL_SESSIONS, "a") == []
    assert {
        alert.session_id for alert in alerts.find(store, ALL_SESSIONS, AlertFilter()).items
    } == {"b"}
    assert readable(store, Scope(with_hidden=True)) == {"a", "b"}


def test_of_a_hidden_session_consumers_learn_only_that_it_is_gone(open_prepared: Open) -> None:
    store = open_prepared()
    worker = processor(store)
    handle(worker, LOG)
    later = [turn(9, session_id=name) for name in "ab"]
    committed = handle(worker, [*later, consent("withdrawn", session_id="a")])
    of_a = [message for message in committed.messages if message.key == b"a"]
    assert [(message.topic, message.value) for message in of_a] == [(t, None) for t in TOPICS]
    assert all(message.value for message in committed.messages if message.key == b"b")
    assert not [m for m in handle(worker, [end(session_id="a")]).messages if m.value]


def test_renewed_consent_shows_the_session_again(open_prepared: Open) -> None:
    store = withdrawn(open_prepared())
    renewed = consent("given", session_id="a", version="2", occurred_at="2026-01-05T12:30:00Z")
    committed = handle(processor(store), [renewed, turn(10, session_id="a", consent=None)])
    assert committed.result.counts["accepted"] == 1
    assert readable(store) == {"a", "b"}


def test_the_setting_applies_to_sessions_that_were_withdrawn_before(open_prepared: Open) -> None:
    store = withdrawn(open_prepared())
    apply(store, OnWithdrawal.KEEP)
    assert readable(store) == {"a", "b"}
    apply(store, OnWithdrawal.HIDE)
    assert readable(store) == {"b"}
    marked = [row["session_id"] for row in rows(store, tables.rollup_marks)]
    assert marked.count("a") == 3, "the roll-ups follow each change"


def test_keep_leaves_rows_readable_and_publishes_them(open_prepared: Open) -> None:
    store = open_prepared()
    store.hide_withdrawn = False
    prepare(store)
    worker = processor(store)
    worker.outgoing._hide_withdrawn = False
    committed = handle(worker, [*LOG, consent("withdrawn", session_id="a")])
    assert readable(store) == {"a", "b"}
    assert all(message.value for message in committed.messages)


def test_erase_destroys_key_and_rows_and_audits_it(open_prepared: Open) -> None:
    store = withdrawn(open_prepared())
    [outbox_id] = apply(store, OnWithdrawal.ERASE)
    kept = {"erasures"}
    left = {
        name
        for name, found in contents(store).items()
        if name not in kept and any(row.get("session_id") == "a" for row in found)
    }
    assert left == set()
    assert store.find_erased(["a"]) == {"a"}
    [entry] = rows(store, tables.audit)
    assert (entry["person"], entry["action"]) == ("(worker)", "erase")
    assert entry["detail"] == "consent withdrawn: 1 sessions, 9 turns"
    [committed] = processor(store).outbox.stored([outbox_id])
    assert {(m.key, m.value) for m in committed.messages} == {(b"a", None)}
    assert len(committed.messages) == 5, "one for each topic"
    assert apply(store, OnWithdrawal.ERASE) == [], "once"
    again = [*LOG, consent("given", session_id="a", version="9")]
    assert handle(processor(store), again).result.counts["erased"] == 10


def test_a_session_on_hold_is_hidden_and_not_erased(open_prepared: Open) -> None:
    store = withdrawn(open_prepared())
    holds.add(store, "a", "case 7", "ada", NOW)
    assert apply(store, OnWithdrawal.ERASE) == []
    assert readable(store) == {"b"}
    assert len(rows(store, tables.turns)) == 18
    holds.remove(store, "a", "ada")
    apply(store, OnWithdrawal.ERASE)
    assert len(rows(store, tables.turns)) == 9


def test_a_withdrawal_survives_the_session_state(open_prepared: Open) -> None:
    """The state expires with the text; another bundle starts with an empty one."""
    store = withdrawn(open_prepared())
    later = datetime(2100, 1, 1, tzinfo=UTC)
    list(retention.purge(store, later, datetime(2000, 1, 1, tzinfo=UTC), later))
    assert rows(store, tables.session_states) == []
    worker = processor(store)
    assert handle(worker, [turn(20, session_id="a")]).result.counts["withheld"] == 1
    [row] = [row for row in rows(store, tables.sessions) if row["session_id"] == "a"]
    assert (row["withdrawn"], row["hidden"], row["consent"]) == (True, True, False)


def test_records_are_stored_once_with_a_pseudonym(open_prepared: Open) -> None:
    store = open_prepared()
    log = [
        turn(0, consent_version="2026-01"),
        consent("withdrawn", speaker_id="joan@example.org", source="phone", version="2026-01"),
        consent("given", occurred_at="2026-01-05T12:10:00Z", version="2026-01"),
    ]
    handle(processor(store), log)
    handle(processor(store), log)
    found = sorted(rows(store, tables.consents), key=lambda row: row["occurred_at"])
    joan = store.privacy.pseudonym("joan@example.org")
    assert [(r["status"], r["effective"], r["source"], r["speaker"]) for r in found] == [
        ("given", True, "turn", joan),
        ("withdrawn", True, "phone", joan),
        ("given", False, None, None),
    ]
    assert "joan" not in dump(store)
    assert withdrawal.find_withdrawn(store, ["s", "x"]) == {"s": "2026-01"}


@pytest.mark.parametrize("said", [None, False])
def test_no_row_of_a_session_without_consent_holds_a_person(
    open_prepared: Open, said: bool | None
) -> None:
    store = open_prepared()
    people = ("joan@example.org", "ada@example.org")
    log = [
        turn(seq, speaker_id=people[seq % 2], consent=said, text=f"I am Joan Smith {seq}")
        for seq in range(6)
    ]
    refused = consent("refused", speaker_id=people[0])
    handle(processor(store), [*log, refused, end(reason="Joan Smith left")])
    stored = dump(store)
    for person in people:
        assert person not in stored
        assert store.privacy.pseudonym(person) not in stored
    assert "Joan" not in stored
    with store.reading() as connection:
        for table in (tables.turns, tables.session_speakers, tables.turn_scores):
            assert connection.scalar(sa.select(sa.func.count()).select_from(table)) == 0
    [row] = rows(store, tables.sessions)
    assert row["end_reason"] is None
