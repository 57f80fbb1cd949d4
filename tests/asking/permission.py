"""Consent of stored sessions to being read by a language model, and questions to ask."""

from stream_app.core.rules.scorecards import Criterion
from stream_app.store.stream.repository import Store
from tests.store.batches import BUNDLE, consent, process

AGREED = {"status": "given", "purposes": ["third-party-processing"], "version": "v9"}
WARM = Criterion("warm", "Was it warm?", ("hardly", "in places", "throughout"), asked=True)
CLOSED = Criterion("closed", "Was there a good end?", ("no", "yes"), asked=True)
QUOTE = "That must have been hard"
"""Words of every turn of the filled store."""


def decide(store: Store, session_id: str, status: str, **changes: object) -> None:
    """Store a consent record of a session."""
    states = store.load_states([session_id], BUNDLE)
    store.commit(process([consent(status, session_id=session_id, **changes)], states))


def permit(store: Store, session_id: str) -> None:
    """Let the session's consent include processing by a third party."""
    states = store.load_states([session_id], BUNDLE)
    store.commit(process([consent(session_id=session_id, **AGREED)], states))
