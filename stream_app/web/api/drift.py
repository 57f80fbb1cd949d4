"""``/drift``: changes of the data or the model that a check found, and their acknowledgement."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole, Right
from stream_app.store.alerts import drift_changes
from stream_app.store.alerts.drift_changes import DriftChange
from stream_app.web.http.fields import Identifier
from stream_app.web.problems import problem_responses
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Admin, needs, require_role

router = APIRouter(prefix="/drift", tags=["analyses"])
DriftReader = Annotated[
    Person, Depends(require_role(PersonRole.SUPERVISOR, PersonRole.ANALYST, PersonRole.ADMIN))
]


@router.get("")
@needs(Right.READ_SCORES)
def list_drift_changes(
    services: ServicesDep,
    person: DriftReader,
    unacknowledged: Annotated[
        bool, Query(description="Only those that nobody has acknowledged")
    ] = False,
) -> list[DriftChange]:
    """Changes that `rapport drift check` found, newest first. They are about all teams."""
    audit.record(services.store, person.name, AuditAction.READ_STATISTICS, detail="drift")
    return drift_changes.all_of(services.store, unacknowledged=unacknowledged)


@router.post("/{change_id}/acknowledge", responses=problem_responses(404, 409))
def acknowledge_drift_change(
    services: ServicesDep,
    person: Admin,
    change_id: Annotated[Identifier, Path(description="As listed by `/drift`")],
) -> DriftChange:
    """Make a change the baseline: its measure is compared with what came since.

    Tokens with limited rights cannot.
    """
    audit.record(services.store, person.name, AuditAction.ACKNOWLEDGE_DRIFT, detail=change_id)
    return drift_changes.acknowledge(services.store, change_id, person.name)
