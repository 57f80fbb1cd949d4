"""Intervening in a running session, and confirming an intervention: stored, audited, published."""

from datetime import UTC, datetime

from stream_app.contracts.interventions import InterventionKind, InterventionReceipt, encode
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.alerts import interventions
from stream_app.store.alerts.interventions import InterventionRead
from stream_app.store.sessions.routing import SessionRouting, read_routing
from stream_app.web.services import Services
from stream_app.work import acting


def intervene(
    services: Services,
    person: Person,
    session_id: str,
    kind: InterventionKind,
    text: str | None = None,
    episode_id: str | None = None,
) -> InterventionRead:
    """Store an intervention and publish it, at the latest when the broker is reachable again.

    Raises:
        NotFound: the session or the alert does not exist in the person's scope.
        StateConflict: the policy does not allow it (``web.acting``), or see
            ``store.interventions.intervene``.
    """
    if kind is not InterventionKind.HAND_BACK:
        acting.check_allowed(services)
        acting.check_session_read(services, person, session_id)
    new = interventions.intervene(
        services.store, person.scope, session_id, kind, person.name, text, episode_id
    )
    audit.record(services.store, person.name, AuditAction.INTERVENE, session_id, kind.value)
    services.hub.broadcast_intervention_threadsafe(new.message, _routing(services, session_id))
    services.interventions.add(new.intervention_id)
    return new


def confirm(services: Services, person: Person, intervention_id: str) -> InterventionRead:
    """Store a desk's receipt; other web processes learn of it through the topic.

    Raises:
        NotFound: the intervention does not exist, or is outside the token's limits.
    """
    found, first = interventions.receive(services.store, person.sends, intervention_id, person.name)
    if first:
        receipt = InterventionReceipt(
            intervention_id=intervention_id,
            session_id=found.session_id,
            person=person.name,
            at=found.received_at or datetime.now(UTC),
        )
        routing = _routing(services, found.session_id)
        services.hub.broadcast_intervention_threadsafe(receipt, routing)
        services.publisher.send_in_background(
            services.settings.intervention_topic,
            found.session_id.encode(),
            encode(receipt),
            "intervention_receipt",
        )
    return found


def _routing(services: Services, session_id: str) -> SessionRouting:
    return read_routing(services.store, [session_id]).get(session_id, SessionRouting())
