"""People's reviews of the scores of a session: ratings and disputes, by turn and head."""

from collections import defaultdict
from dataclasses import dataclass, field

from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.stream.repository import Store
from stream_app.store.work import disputes, ratings
from stream_app.store.work.disputes import Dispute
from stream_app.store.work.ratings import Rating

Key = tuple[int | None, str]
"""Seq of a turn (None for the session) and head."""


@dataclass(frozen=True, slots=True)
class Reviews:
    """Reviews of one session that one person may see; ``commented``: by seq and account."""

    ratings: dict[Key, list[Rating]] = field(default_factory=dict)
    disputes: dict[Key, list[Dispute]] = field(default_factory=dict)
    commented: dict[int | None, dict[str, str]] = field(default_factory=dict)

    @property
    def waiting(self) -> list[Dispute]:
        """Disputes without an answer."""
        return [one for found in self.disputes.values() for one in found if one.decision is None]

    def own_value(self, person: Person, seq: int | None, head: str) -> int | None:
        """The value that this person gave."""
        found = self.ratings.get((seq, head), [])
        return next((one.value for one in found if one.person == person.name), None)

    def own_comment(self, person: Person, seq: int | None) -> str:
        """The comment that this person wrote on the turn or session; empty without one."""
        return self.comments(seq).get(person.name, "")

    def comments(self, seq: int | None) -> dict[str, str]:
        """Comments on a turn or the session, by account."""
        return self.commented.get(seq, {})


def load_reviews(store: Store, person: Person, session_id: str) -> Reviews:
    """Load the reviews of a session; counsellors see only their own disputes."""
    rated: dict[Key, list[Rating]] = defaultdict(list)
    commented: dict[int | None, dict[str, str]] = defaultdict(dict)
    for rating in ratings.of_session(store, person, session_id):
        rated[rating.seq, rating.head].append(rating)
        if rating.comment:
            commented[rating.seq][rating.person] = rating.comment
    contested: dict[Key, list[Dispute]] = defaultdict(list)
    own = person.name if person.role is PersonRole.COUNSELLOR else None
    for dispute in disputes.find(store, person.scope, session_id=session_id, person=own):
        contested[dispute.seq, dispute.head].append(dispute)
    return Reviews(dict(rated), dict(contested), dict(commented))
