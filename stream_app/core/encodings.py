"""The only place where turns are encoded.

An encoding depends on nothing but text and role, so it can be made before the session's state has
been loaded; what could not be made ahead is encoded once the session has accepted the turn.
"""

from collections.abc import Callable, Iterable, Sequence

from stream_app.contracts.events import Event, Turn
from stream_app.core.environment import Policy
from stream_app.core.ports import Encoding, Scorer
from stream_app.core.session_state import SessionState
from stream_app.core.window import WindowTurn
from stream_app.errors import ContractError


class Encodings:
    """Encodes ahead of acceptance where consent is known, and after it otherwise.

    ``ahead`` and ``attach`` may run in two threads; each is called in the order of the log.
    """

    def __init__(self, scorer: Scorer, policy: Policy) -> None:
        self._scorer = scorer
        self._policy = policy
        self._stated: dict[str, bool] = {}

    def ahead(
        self, events: Sequence[Event | ContractError], known: Callable[[str], SessionState | None]
    ) -> list[Encoding | None]:
        """Encode the turns of a batch that consent covers as far as can be told by now.

        Only a prediction: the session decides what is withheld. It rests on what this batch states,
        then on the batch before, which may not have reached the states yet, then on ``known``: the
        session's state in memory.
        """
        before, self._stated = self._stated, {}
        turns: dict[int, Turn] = {}
        for place, event in enumerate(events):
            if isinstance(event, Turn):
                if event.consent is not None:
                    self._stated[event.session_id] = event.consent
                if self._is_covered(event.session_id, before, known):
                    turns[place] = event
        made = dict(zip(turns, self._encode(turns.values()), strict=True))
        return [made.get(place) for place in range(len(events))]

    def attach(self, accepted: Sequence[tuple[Turn, WindowTurn, Encoding | None]]) -> None:
        """Give accepted turns their encodings: those made ahead, or new ones, made in one call."""
        made = iter(self._encode([turn for turn, _, ahead in accepted if ahead is None]))
        for _, kept, ahead in accepted:
            encoding = next(made) if ahead is None else ahead
            kept.vectors, kept.rationales = encoding.vectors, encoding.rationales
            kept.truncated = encoding.truncated

    def _is_covered(
        self,
        session_id: str,
        before: dict[str, bool],
        known: Callable[[str], SessionState | None],
    ) -> bool:
        for stated in (self._stated, before):
            if session_id in stated:
                return stated[session_id]
        state = known(session_id)
        return state is not None and self._policy.covers(state.consent)

    def _encode(self, turns: Iterable[Turn]) -> list[Encoding]:
        turns = list(turns)
        return self._scorer.encode(
            [turn.text for turn in turns], [turn.speaker_role for turn in turns]
        )
