"""Scored sessions of two teams, and accounts of people who judge them."""

from typing import Final

from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.stream.repository import Store
from tests.store import batches

NOOR: Final = "noor@example.org"
"""The counsellor of every session of team north."""
TURNS: Final = 12


def fill(store: Store, sessions: int = 3) -> None:
    """Commit closed sessions ``north-0``, … by Noor, and as many of team south by someone else."""
    for team, counsellor in (("north", NOOR), ("south", "olu@example.org")):
        for number in range(sessions):
            name = f"{team}-{number}"
            events = [
                batches.turn(
                    seq,
                    session_id=name,
                    team=team,
                    speaker_id=counsellor if seq % 2 else f"client of {name}",
                )
                for seq in range(TURNS)
            ]
            store.commit(batches.process([*events, batches.end(session_id=name)]))


def person(store: Store, name: str, role: PersonRole, team: str | None = None) -> Person:
    """Create an account; a counsellor's is Noor's."""
    speaker = store.privacy.pseudonym(NOOR) if role is PersonRole.COUNSELLOR else None
    all_teams = role is PersonRole.SUPERVISOR and team is None
    made = Person(name, role, team, speaker, all_teams=all_teams)
    People(store).add(made, None)
    return made


def supervisor(store: Store, name: str = "sue", team: str | None = "north") -> Person:
    """Create a supervisor of a team; without one, of all teams."""
    return person(store, name, PersonRole.SUPERVISOR, team)


def counsellor(store: Store) -> Person:
    """Create Noor's account."""
    return person(store, "noor", PersonRole.COUNSELLOR)
