"""What people said beside the model's scores: ratings and disputes, by turn and head."""

from collections import defaultdict
from dataclasses import dataclass, field

from stream_app.store import disputes, ratings
from stream_app.store.disputes import Dispute
from stream_app.store.people import Person, PersonRole
from stream_app.store.ratings import Rating
from stream_app.store.repository import Store

Place = tuple[int | None, str]


@dataclass(frozen=True, slots=True)
class Reviews:
    """Of one session, as one person may see them."""

    ratings: dict[Place, list[Rating]] = field(default_factory=dict)
    disputes: dict[Place, list[Dispute]] = field(default_factory=dict)

    @property
    def waiting(self) -> list[Dispute]:
        """Disputes that nobody has answered."""
        return [one for found in self.disputes.values() for one in found if one.decision is None]


def of_session(store: Store, person: Person, session_id: str) -> Reviews:
    """A counsellor sees the own disputes only."""
    rated: dict[Place, list[Rating]] = defaultdict(list)
    for rating in ratings.of_session(store, person, session_id):
        rated[rating.seq, rating.head].append(rating)
    contested: dict[Place, list[Dispute]] = defaultdict(list)
    own = person.name if person.role is PersonRole.COUNSELLOR else None
    for dispute in disputes.find(store, person.scope, session_id=session_id, person=own):
        contested[dispute.seq, dispute.head].append(dispute)
    return Reviews(dict(rated), dict(contested))
