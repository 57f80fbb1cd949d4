"""People's reviews of the scores of a session: ratings and disputes, by turn and head."""

from collections import defaultdict
from dataclasses import dataclass, field

from stream_app.store import disputes, ratings
from stream_app.store.disputes import Dispute
from stream_app.store.people import Person, PersonRole
from stream_app.store.ratings import Rating
from stream_app.store.repository import Store

Key = tuple[int | None, str]
"""Seq of a turn (None for the session) and head."""


@dataclass(frozen=True, slots=True)
class Reviews:
    """Reviews of one session that one person may see."""

    ratings: dict[Key, list[Rating]] = field(default_factory=dict)
    disputes: dict[Key, list[Dispute]] = field(default_factory=dict)

    @property
    def waiting(self) -> list[Dispute]:
        """DeliveryUnconfirmed disputes."""
        return [one for found in self.disputes.values() for one in found if one.decision is None]


def load_reviews(store: Store, person: Person, session_id: str) -> Reviews:
    """Load the reviews of a session; counsellors see only their own disputes."""
    rated: dict[Key, list[Rating]] = defaultdict(list)
    for rating in ratings.of_session(store, person, session_id):
        rated[rating.seq, rating.head].append(rating)
    contested: dict[Key, list[Dispute]] = defaultdict(list)
    own = person.name if person.role is PersonRole.COUNSELLOR else None
    for dispute in disputes.find(store, person.scope, session_id=session_id, person=own):
        contested[dispute.seq, dispute.head].append(dispute)
    return Reviews(dict(rated), dict(contested))
