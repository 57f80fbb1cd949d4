"""What people do about an alert, stored and sent to open pages and to Kafka."""

from stream_app.contracts.scores import AlertAction, encode
from stream_app.store.accounts.people import Person
from stream_app.store.alerts import alert_actions
from stream_app.store.alerts.alerts import ActionKind, AlertRead
from stream_app.store.alerts.visible_alerts import redact_for
from stream_app.store.database.judgements import Reason
from stream_app.store.sessions.routing import SessionRouting, read_routing
from stream_app.web.services import Services


def act(
    services: Services,
    person: Person,
    episode_id: str,
    kind: ActionKind,
    reason: Reason | None,
    note: str | None,
) -> AlertRead:
    """Acknowledge, resolve, judge or note an alert, and tell everybody who sees it.

    Raises:
        NoSuchAlert: there is none within the person's scope.
        StateConflict: its state allows no such action.
    """
    action, alert = alert_actions.record_action(
        services.store, person.scope, episode_id, kind, person.name, reason, note
    )
    message = AlertAction(
        action_id=action.action_id,
        episode_id=episode_id,
        session_id=alert.session_id,
        kind=kind.value,
        reason=action.reason,
        person=person.name,
        at=action.at.isoformat(),
        state=alert.state.value,
    )
    routing = read_routing(services.store, [alert.session_id])
    services.hub.broadcast_action_threadsafe(
        message, routing.get(alert.session_id, SessionRouting())
    )
    services.publisher.send_in_background(
        services.settings.alert_action_topic,
        alert.session_id.encode(),
        encode(message),
        "alert_action",
    )
    return redact_for(person, alert)
