"""Which alerts are due at a notification target, in which order, and until when."""

import time
from datetime import UTC, datetime, timedelta
from typing import Final

from stream_app.contracts.scores import AlertState
from stream_app.store.alerts.deliveries import Deliveries, DeliveryState, DueAlert, PendingDigest
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from tests.store.batches import end, process, turn
from tests.store.reading import rows

FIRING, RESOLVED = AlertState.FIRING, AlertState.RESOLVED
NOW: Final = datetime(2026, 1, 5, 12, tzinfo=UTC)
BEFORE, LATER = NOW - timedelta(hours=1), NOW + timedelta(minutes=5)


def alarm(store: Store, session_id: str, minute: int = 0) -> None:
    """Commit a session with an alert that fires and resolves."""
    at = f"2026-01-05T10:{minute:02}:00Z"
    events = [turn(seq, session_id=session_id, occurred_at=at) for seq in range(4)]
    store.commit(process([*events, end(session_id=session_id)]))


def states(deliveries: Deliveries) -> list[tuple[str, AlertState]]:
    return [(alert.session_id, alert.state) for alert in deliveries.due()]


def begun(store: Store, target: str = "t") -> Deliveries:
    deliveries = Deliveries(store, target)
    deliveries.register_target(NOW)
    return deliveries


def told(deliveries: Deliveries, alert: DueAlert) -> None:
    deliveries.claim([alert], alert.alert_id, NOW, counted=True)
    deliveries.mark_delivered([alert], DeliveryState.DELIVERED)


def test_only_firing_and_then_its_resolution_are_due(store: Store) -> None:
    deliveries = begun(store)
    alarm(store, "a")
    [first] = deliveries.due()
    assert (first.state, first.firing, first.began_at) == (FIRING, None, first.occurred_at)
    told(deliveries, first)
    [second] = deliveries.due()
    assert (second.state, second.firing) == (RESOLVED, DeliveryState.DELIVERED)
    assert second.began_at == first.occurred_at < second.occurred_at
    assert second.episode_id == first.episode_id
    told(deliveries, second)
    assert deliveries.due() == []
    assert len(rows(store, tables.alerts)) == 3


def test_due_alerts_have_the_attributes_of_their_session(store: Store) -> None:
    deliveries = begun(store)
    events = [turn(seq, team="nights", domain="peer-support") for seq in range(4)]
    store.commit(process(events))
    [alert] = deliveries.due()
    assert (alert.team, alert.domain) == ("nights", "peer-support")
    assert alert.severity == "warning"
    assert alert.turns
    assert alert.reason


def test_a_new_target_does_not_receive_earlier_alerts(store: Store) -> None:
    alarm(store, "a")
    deliveries = begun(store)
    assert deliveries.due() == []
    alarm(store, "b")
    deliveries.register_target(NOW)
    assert states(deliveries) == [("b", FIRING)]


def test_alerts_stored_while_the_notifier_loads_are_not_earlier_ones(store: Store) -> None:
    alarm(store, "before")
    time.sleep(1.2)
    alarm(store, "meanwhile")
    deliveries = Deliveries(store, "t")
    deliveries.register_target(NOW, running=0.6)
    [alert] = deliveries.due()
    assert (alert.session_id, alert.state) == ("meanwhile", FIRING)
    told(deliveries, alert)
    assert states(deliveries) == [("meanwhile", RESOLVED)]


def test_an_alert_of_a_timed_rule_counts_from_its_own_time(store: Store) -> None:
    now = store.clock()
    alarm(store, "quiet")
    turns = tables.turns.update().values(stored_at=now - timedelta(hours=1))
    late = tables.alerts.update().values(occurred_at=now + timedelta(seconds=1))
    with store.transaction() as connection:
        connection.execute(turns)
        connection.execute(late.where(tables.alerts.c.state == FIRING.value))
    deliveries = Deliveries(store, "t")
    deliveries.register_target(NOW, running=60.0)
    assert states(deliveries) == [("quiet", FIRING)]


def test_targets_are_independent(store: Store) -> None:
    one, two = begun(store, "one"), begun(store, "two")
    alarm(store, "a")
    told(one, one.due()[0])
    assert states(one) == [("a", RESOLVED)]
    assert states(two) == [("a", FIRING)]
    assert one.notifications_since(BEFORE) == 1
    assert two.notifications_since(BEFORE) == 0


def test_failed_alerts_follow_untried_ones_and_do_not_count_towards_the_cap(store: Store) -> None:
    deliveries = begun(store)
    alarm(store, "a", minute=1)
    alarm(store, "b", minute=2)
    poison = deliveries.due()[0]
    deliveries.claim([poison], poison.alert_id, NOW, counted=True)
    assert deliveries.notifications_since(BEFORE) == 1
    deliveries.mark_failed([poison], "status 500")
    assert deliveries.notifications_since(BEFORE) == 0
    assert [alert.session_id for alert in deliveries.due()] == ["b", "a"]
    again = deliveries.due()[-1]
    assert (again.alert_id, again.attempts, again.notification_id) == (poison.alert_id, 1, None)
    [row] = rows(store, tables.deliveries)
    assert (row["state"], row["problem"], row["attempts"]) == ("due", "status 500", 1)


def test_unconfirmed_alerts_keep_their_notification_and_count_once(store: Store) -> None:
    deliveries = begun(store)
    alarm(store, "a")
    [alert] = deliveries.due()
    deliveries.claim([alert], alert.alert_id, NOW, counted=True)
    deliveries.mark_unconfirmed([alert], "no answer")
    [again] = deliveries.due()
    assert (again.notification_id, again.slot_at) == (alert.alert_id, NOW)
    assert deliveries.notifications_since(BEFORE) == 1
    assert deliveries.notifications_since(NOW) == 0


def test_an_unconfirmed_digest_and_newly_held_alerts_are_pending_separately(store: Store) -> None:
    deliveries = begun(store)
    for name in "abc":
        alarm(store, name)
    for alert in deliveries.due():
        deliveries.hold_for_digest(alert, NOW)
    assert deliveries.pending_digests() == [PendingDigest(None, NOW, None)]
    deliveries.claim(deliveries.held_alerts(None), "digest", NOW, counted=True)
    assert deliveries.notifications_since(BEFORE) == 1
    [late, *_] = deliveries.due()
    deliveries.hold_for_digest(late, LATER)
    assert deliveries.pending_digests() == [
        PendingDigest("digest", NOW, NOW),
        PendingDigest(None, LATER, None),
    ]
    assert len(deliveries.held_alerts("digest")) == 3
    assert [alert.alert_id for alert in deliveries.held_alerts(None)] == [late.alert_id]
    deliveries.mark_delivered(deliveries.held_alerts("digest"), DeliveryState.DIGESTED)
    assert deliveries.pending_digests() == [PendingDigest(None, LATER, None)]


def test_only_one_of_two_notifiers_delivers(store: Store, other: Store) -> None:
    with Deliveries(store, "t").lock() as first, Deliveries(other, "t").lock() as second:
        assert first
        assert second is (store.engine.dialect.name == "sqlite")
    with Deliveries(other, "t").lock() as later:
        assert later
