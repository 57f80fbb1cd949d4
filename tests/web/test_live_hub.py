"""An erased session leaves the memory of a web process, and its late events stay out."""

from stream_app.store.queries.routing import SessionRouting
from stream_app.store.queries.scope import ALL_SESSIONS
from stream_app.web.live_hub import Hub, LiveEventKind, Subscription
from tests.store.batches import process, turn


def test_events_of_an_erased_session_are_dropped_everywhere() -> None:
    hub = Hub()
    start = hub.position
    results = [process([turn(seq, session_id=name) for seq in (0, 1)]) for name in "ba"]

    def broadcast() -> None:
        for result in results:
            for message in result.session_scores:
                hub.broadcast_message(message, SessionRouting())

    def replayed() -> list[tuple[LiveEventKind, str | None]]:
        with hub.subscribe(Subscription(ALL_SESSIONS), start) as (_, missed):
            return [(event.kind, event.session_id) for event in missed]

    broadcast()
    with hub.subscribe(Subscription(ALL_SESSIONS), None) as (client, _):
        broadcast()
        hub.forget("a")
        hub.forget("a")
        broadcast()
        queued = [(event.kind, event.session_id) for event in client._queue]
    told = (LiveEventKind.SESSION, "b")
    assert queued == [told, (LiveEventKind.RESYNC, None), told]
    assert replayed() == [told, told, (LiveEventKind.RESYNC, None), told]
