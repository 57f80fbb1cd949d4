"""What of a session or a sample a person may see."""

from dataclasses import replace

from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.alerts.visible_alerts import HIDDEN_NAME
from stream_app.store.sessions.sessions import SessionCard
from stream_app.store.work.calibration_samples import CalibrationSample


def session_for(person: Person, card: SessionCard) -> SessionCard:
    """Remove pseudonyms for an analyst, and words for who may not read text."""
    if person.role is PersonRole.ANALYST:
        card = replace(card, counsellors=[])
    return card if person.reads_transcripts else replace(card, end_reason=None)


def sample_for(person: Person, sample: CalibrationSample) -> CalibrationSample:
    """Remove the name of who drew the sample, for an analyst."""
    return replace(sample, person=HIDDEN_NAME) if person.role is PersonRole.ANALYST else sample
