"""An alert names the counsellor who spoke when it was raised."""

from stream_app.contracts.scores import AlertState
from stream_app.store.alerts import alert_counsellors, alerts
from stream_app.store.alerts.alerts import AlertFilter
from stream_app.store.sessions.routing import read_routing
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store
from tests.store.batches import prepare, process, turn


def test_an_alert_names_who_spoke(store: Store) -> None:
    prepare(store)
    ann, ben = (store.privacy.pseudonym(name) for name in ("ann", "ben"))
    said = [
        turn(seq, session_id="s", speaker_id="c" if seq % 2 == 0 else "ann" if seq < 6 else "ben")
        for seq in range(12)
    ]
    store.commit(process([*said, *(turn(seq, session_id="t") for seq in range(4))]))
    found = alerts.find(store, ALL_SESSIONS, AlertFilter()).items
    everybody = {key: of.counsellors for key, of in read_routing(store, ["s", "t"]).items()}
    named = alert_counsellors.of_alerts(store, found, everybody)
    assert {alert.session_id for alert in found} == {"s", "t"}
    for alert in found:
        if alert.session_id == "t":
            assert named[alert.episode_id] == everybody["t"]
            continue
        raised = max(
            step.seq
            for step in alert.transitions
            if step.seq is not None and step.state in (AlertState.PENDING, AlertState.FIRING)
        )
        assert named[alert.episode_id] == [ann if raised < 7 else ben]
