"""What is due for a notification target, in which order, and until when."""

from stream_app.contracts.scores import AlertState
from stream_app.store import tables
from stream_app.store.deliveries import Deliveries
from stream_app.store.repository import Store
from tests.store.batches import end, process, turn
from tests.store.reading import rows


def alarm(store: Store, session_id: str, minute: int = 0) -> None:
    """Commit a session whose alert fires and is resolved."""
    at = f"2026-01-05T10:{minute:02}:00Z"
    events = [turn(seq, session_id=session_id, occurred_at=at) for seq in range(4)]
    store.commit(process([*events, end(session_id=session_id)]))


def states(deliveries: Deliveries) -> list[tuple[str, AlertState]]:
    return [(alert.session_id, alert.state) for alert in deliveries.due()]


def test_firing_and_resolved_are_due_and_nothing_else(store: Store) -> None:
    deliveries = Deliveries(store, "t")
    deliveries.begin()
    alarm(store, "a")
    assert states(deliveries) == [("a", AlertState.FIRING), ("a", AlertState.RESOLVED)]
    first, second = deliveries.due()
    assert first.began_at == second.began_at == first.occurred_at < second.occurred_at
    assert len(rows(store, tables.alerts)) == 3


def test_a_new_target_is_not_told_the_past(store: Store) -> None:
    alarm(store, "a")
    deliveries = Deliveries(store, "t")
    deliveries.begin()
    assert deliveries.due() == []
    alarm(store, "b")
    deliveries.begin()
    assert {alert.session_id for alert in deliveries.due()} == {"b"}


def test_what_is_acknowledged_is_due_no_more_and_targets_do_not_mix(store: Store) -> None:
    one, two = Deliveries(store, "one"), Deliveries(store, "two")
    one.begin()
    two.begin()
    alarm(store, "a")
    for alert in one.due():
        one.acknowledged(alert)
    assert one.due() == []
    assert len(two.due()) == 2


def test_what_failed_comes_after_what_was_not_tried(store: Store) -> None:
    deliveries = Deliveries(store, "t")
    deliveries.begin()
    alarm(store, "a", minute=1)
    alarm(store, "b", minute=2)
    poison = deliveries.due()[0]
    deliveries.failed(poison, "status 500")
    assert [alert.session_id for alert in deliveries.due()] == ["b", "a", "b", "a"]
    again = deliveries.due()[-1]
    assert (again.alert_id, again.attempts) == (poison.alert_id, 1)
    [row] = rows(store, tables.deliveries)
    assert (row["state"], row["problem"], row["attempts"]) == ("due", "status 500", 1)


def test_only_one_of_two_notifiers_delivers(store: Store, other: Store) -> None:
    with Deliveries(store, "t").alone() as first, Deliveries(other, "t").alone() as second:
        assert first
        assert second is (store.engine.dialect.name == "sqlite")
    with Deliveries(other, "t").alone() as later:
        assert later
