"""Names of counsellors on pages, and finding a counsellor by a name or a short form."""

from collections.abc import Collection, Mapping
from typing import Final

from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.sessions import counsellors
from stream_app.web.console import pseudonym_words
from stream_app.web.services import Services

MOST: Final = 500


def names_for(
    services: Services, person: Person, speakers: Collection[str] | None = None
) -> Mapping[str, str]:
    """Account names by pseudonym, as far as this person may know them; None: of all speakers."""
    match person.role:
        case PersonRole.SUPERVISOR:
            return services.people.names_of_speakers(speakers)
        case PersonRole.COUNSELLOR if person.speaker:
            return {person.speaker: person.name}
        case _:
            return {}


def find_counsellors(services: Services, person: Person, given: str) -> list[str]:
    """Pseudonyms within the access scope that a pseudonym, short form or account name means."""
    store, scope = services.store, person.scope
    if counsellors.one(store, scope, given) is not None:
        return [given]
    named = [
        speaker
        for speaker, name in names_for(services, person).items()
        if name.casefold() == given.strip().casefold()
        and counsellors.one(store, scope, speaker) is not None
    ]
    prefix = pseudonym_words.hex_prefix(given)
    if named or prefix is None:
        return named
    return [
        each.speaker for each in counsellors.find(store, scope, limit=MOST, prefix=prefix).items
    ]
