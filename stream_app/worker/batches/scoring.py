"""Scores a batch with what is known of its sessions: cached, stored, erased or withdrawn."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Final

from msgspec import structs

from stream_app.contracts.events import SessionEnd, Turn
from stream_app.core.pipeline.pipeline import Pipeline, Received, is_revision
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.origin import Origin, refuse_contradiction
from stream_app.core.session.past import PastSession
from stream_app.core.session.ports import SessionStore
from stream_app.core.session.session_state import SessionState, Versioned
from stream_app.errors import ContractError
from stream_app.worker.batches.metrics import Stages
from stream_app.worker.batches.retries import Retries
from stream_app.worker.batches.session_cache import SessionCache

States = dict[str, Versioned]

EPOCH: Final = datetime.fromtimestamp(0, UTC)


class Scoring:
    """Loads the sessions of a batch and processes it; commits nothing."""

    def __init__(
        self,
        pipeline: Pipeline,
        store: SessionStore,
        cache: SessionCache,
        retries: Retries,
        stages: Stages,
        now: Callable[[], datetime],
    ) -> None:
        self._pipeline = pipeline
        self._store = store
        self._cache = cache
        self._retries = retries
        self._stages = stages
        self._now = now

    def process(self, batch: list[Received]) -> BatchResult:
        """Load the states of the batch's sessions, and score its turns."""
        session_ids = sessions_of(batch)
        with self._stages.stage("load"):
            states = self._states(session_ids)
            unknown = [key for key in session_ids if key not in states]
            erased = self._retries.while_unavailable(lambda: self._store.find_erased(unknown))
            states |= self._withdrawn_before(unknown)
            begun = self._retries.while_unavailable(lambda: self._store.find_begun(unknown))
            batch = [_compared(received, begun, states) for received in batch]
            self._note_begun(batch, states, begun)
        with self._stages.stage("score", batch):
            kept = [received for received in batch if received.session_id not in erased]
            result = self._pipeline.process(kept, states, self._past(kept))
        if erased:
            result.counts["erased"] += len(batch) - len(kept)
        self._set_seen_at(result, kept)
        return result

    def _states(self, session_ids: list[str]) -> States:
        cached = {key: self._cache.get(key) for key in session_ids}
        states = {key: versioned for key, versioned in cached.items() if versioned is not None}
        missing = [key for key in session_ids if key not in states]
        self._stages.metrics.cache_hits.inc(len(states))
        self._stages.metrics.cache_misses.inc(len(missing))
        bundle = self._pipeline.bundle_id
        return states | self._retries.while_unavailable(
            lambda: self._store.load_states(missing, bundle)
        )

    def _withdrawn_before(self, session_ids: list[str]) -> States:
        """New states of sessions whose consent was withdrawn, so that it stays withdrawn.

        Their earlier state has expired or belongs to another bundle.
        """
        found = self._retries.while_unavailable(lambda: self._store.find_withdrawn(session_ids))
        bundle = self._pipeline.bundle_id
        return {
            key: Versioned(
                SessionState(
                    key,
                    bundle,
                    consent=False,
                    withdrawn=True,
                    consent_version=version,
                    undecided=True,
                )
            )
            for key, version in found.items()
        }

    def _note_begun(
        self, batch: list[Received], states: States, begun: Mapping[str, Origin]
    ) -> None:
        """Add states of sessions that have turns but no state under this bundle, and now an end.

        Otherwise the end would be one before the first turn.
        """
        bundle = self._pipeline.bundle_id
        for received in batch:
            if isinstance(end := received.event, SessionEnd) and end.session_id in begun:
                new = Versioned(SessionState(end.session_id, bundle, undecided=True))
                state = states.setdefault(end.session_id, new).state
                state.started_at = begun[end.session_id].started_at

    def _past(self, batch: list[Received]) -> dict[str, PastSession]:
        """Return the stored turns and scores of sessions of which a turn is edited or deleted."""
        return {
            event.session_id: self._retries.while_unavailable(
                partial(self._store.past_session, event.session_id)
            )
            for received in batch
            if is_revision(event := received.event)
        }

    def _set_seen_at(self, result: BatchResult, batch: list[Received]) -> None:
        """Set when each session was last heard of: the append time, or now without one."""
        now = self._now()
        seen: dict[str, datetime] = {}
        for received in batch:
            if (key := received.session_id) is not None:
                seen[key] = max(received.appended_at or now, seen.get(key, EPOCH))
        for key, versioned in result.sessions.items():
            versioned.seen_at = seen[key]


def sessions_of(batch: Iterable[Received]) -> list[str]:
    """Return the ids of the sessions that a batch changes, sorted."""
    return sorted({key for received in batch if (key := received.session_id) is not None})


def _compared(received: Received, begun: Mapping[str, Origin], states: States) -> Received:
    """The event, or its error if it is a turn that contradicts its stored session.

    A refused turn leaves no state to a session that has begun and has none under this bundle.
    """
    turn = received.event
    if isinstance(turn, ContractError):
        lost = received.session_id in begun and received.session_id not in states
        return structs.replace(received, gap=False) if lost else received
    if not isinstance(turn, Turn) or turn.session_id not in begun:
        return received
    try:
        refuse_contradiction(turn, begun[turn.session_id])
    except ContractError as problem:
        return structs.replace(received, event=problem, gap=turn.session_id in states)
    return received
