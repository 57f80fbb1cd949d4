"""Scores of a second bundle, computed in silence beside the one in force.

A shadow reads the same requests and gives scores that are stored separately: they change no state,
alert, aggregate or message. Sessions of routed bundles have no shadow. With the same encoder it
uses the vectors that were computed already; with another one it encodes each turn a second time and
keeps the vectors in memory for a while.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import structs

from stream_app.contracts.events import Turn
from stream_app.core.measures.window import Neighbour, ScoringRequest, WindowTurn
from stream_app.core.session.batch import ShadowScore
from stream_app.core.session.ports import Encoding, HeadScores, Scorer
from stream_app.core.session.restrictions import without_restricted

SESSIONS_KEPT: Final = 2000
"""Sessions whose vectors a shadow with another encoder remembers, the latest ones."""
TURNS_KEPT: Final = 64
"""Most turns kept of a session, the latest ones."""


class Shadow:
    """Scores with a second bundle; a fault in it is reported and never raised.

    ``shares_encoder``: the vectors of the bundle in force are those of this one. ``on_fault`` is
    called with the exception; the batch then has no shadow scores. Not thread-safe.
    """

    def __init__(
        self, scorer: Scorer, on_fault: Callable[[Exception], None], *, shares_encoder: bool
    ) -> None:
        self._scorer = scorer
        self._on_fault = on_fault
        self._shares_encoder = shares_encoder
        self._encoded: OrderedDict[str, OrderedDict[int, Encoding]] = OrderedDict()

    @property
    def bundle_id(self) -> str:
        """The shadow's bundle."""
        return self._scorer.bundle_id

    def encode(self, accepted: Sequence[tuple[Turn, WindowTurn]]) -> None:
        """Encode accepted turns, which consent covers, if the encoder is another one."""
        if self._shares_encoder or not accepted:
            return
        try:
            made = self._scorer.encode(
                [turn.text for turn, _ in accepted], [turn.speaker_role for turn, _ in accepted]
            )
            for (turn, kept), encoding in zip(accepted, made, strict=True):
                self._remember(turn.session_id, kept.seq, encoding)
        except Exception as problem:  # noqa: BLE001  # never disturbs the bundle in force
            self._on_fault(problem)

    def score(self, requests: Sequence[tuple[str, ScoringRequest]]) -> list[ShadowScore]:
        """Score requests with the ids of their sessions; none of them after a fault.

        With another encoder, requests are left out whose turns this process has not seen, for
        example after a restart.
        """
        try:
            possible = [
                (session_id, request, own)
                for session_id, request in requests
                if (own := self._own(session_id, request)) is not None
            ]
            found = self._scorer.score([own for _, _, own in possible])
            return [
                self._stored(session_id, request, heads)
                for (session_id, request, _), heads in zip(possible, found, strict=True)
            ]
        except Exception as problem:  # noqa: BLE001  # never disturbs the bundle in force
            self._on_fault(problem)
            return []

    def forget(self, session_ids: Iterable[str]) -> None:
        """Drop the vectors of these sessions: they ended, were withdrawn or erased."""
        for session_id in session_ids:
            self._encoded.pop(session_id, None)

    def forget_all(self) -> None:
        """Drop all vectors; the sessions that go on are scored again from their next turns on."""
        self._encoded.clear()

    def _stored(self, session_id: str, request: ScoringRequest, heads: HeadScores) -> ShadowScore:
        found = without_restricted(heads, request.restricted)
        for name, level in found.expressed.levels.items():
            found.expressed[name] = structs.replace(level, rationale=[])
        return ShadowScore(
            session_id,
            request.turn.seq,
            request.stage,
            self.bundle_id,
            found.expressed,
            found.perceived,
            found.client,
            found.abstained,
        )

    def _remember(self, session_id: str, seq: int, encoding: Encoding) -> None:
        own = self._encoded.setdefault(session_id, OrderedDict())
        self._encoded.move_to_end(session_id)
        own[seq] = structs.replace(encoding, rationales={})
        if len(own) > TURNS_KEPT:
            own.popitem(last=False)
        if len(self._encoded) > SESSIONS_KEPT:
            self._encoded.popitem(last=False)

    def _own(self, session_id: str, request: ScoringRequest) -> ScoringRequest | None:
        """The request with this encoder's vectors; None if one is not known."""
        if self._shares_encoder:
            return request
        known: Mapping[int, Encoding] = self._encoded.get(session_id, {})
        if any(
            turn.seq not in known
            for turn in (request.turn, *(other.turn for other in request.context))
        ):
            return None
        return structs.replace(
            request,
            turn=_with(request.turn, known[request.turn.seq]),
            context=[
                Neighbour(_with(other.turn, known[other.turn.seq]), other.distance)
                for other in request.context
            ],
        )


def _with(turn: WindowTurn, encoding: Encoding) -> WindowTurn:
    return structs.replace(
        turn, vectors=encoding.vectors, tokens=encoding.tokens, readings=b"", parts=encoding.parts
    )
