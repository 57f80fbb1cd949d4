"""The parts of an alert that a person may see, in the API and in exports."""

from dataclasses import replace
from typing import Final

from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.alerts.alerts import AlertRead

HIDDEN_NAME: Final = "withheld"


def redact_for(person: Person, alert: AlertRead) -> AlertRead:
    """Remove what this person may not see: only supervisors see notes, analysts see no names."""
    if person.role is PersonRole.SUPERVISOR and person.reads_transcripts:
        return alert
    named = person.role is not PersonRole.ANALYST
    actions = [
        replace(action, note=None, person=action.person if named else HIDDEN_NAME)
        for action in alert.actions
    ]
    return replace(alert, actions=actions)
