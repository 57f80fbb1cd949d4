"""The only module that encodes turns.

An encoding depends only on text and role, as do the intents found in it, so it can be computed
before the session's state is loaded. Turns not encoded ahead are encoded after the session has
accepted them.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import structs

from stream_app.contracts.events import Consent, ConsentStatus, Event, Turn
from stream_app.core.environment import Policy
from stream_app.core.intents import IntentReader, NoIntentReader
from stream_app.core.ports import Encoding, Scorer
from stream_app.core.session_state import SessionState
from stream_app.core.window import WindowTurn
from stream_app.errors import ContractError


class Encodings:
    """Encodes ahead of acceptance if consent is known, otherwise after it.

    ``ahead`` and ``attach`` may run in two threads; each is called in log order. ``intent_reader``
    may be replaced at any time: turns that are encoded later are read with the new one.
    """

    def __init__(self, scorer: Scorer, policy: Policy) -> None:
        self._scorer = scorer
        self.intent_reader: IntentReader = NoIntentReader()
        self._policy = policy
        self._stated: dict[str, bool] = {}

    def ahead(
        self, events: Sequence[Event | ContractError], known: Callable[[str], SessionState | None]
    ) -> list[Encoding | None]:
        """Encode the turns of a batch that consent covers, as far as is known.

        This is only a prediction: the session decides what is withheld. It is based on this batch,
        then on the previous batch, which may not be in the states yet, then on ``known``: the
        cached session state.
        """
        before, self._stated = self._stated, {}
        turns: dict[int, Turn] = {}
        for place, event in enumerate(events):
            if isinstance(event, Consent):
                self._stated[event.session_id] = event.status is ConsentStatus.GIVEN
            elif isinstance(event, Turn):
                if event.consent is not None:
                    self._stated[event.session_id] = event.consent
                if self._is_covered(event.session_id, before, known):
                    turns[place] = event
        made = dict(zip(turns, self._encode(turns.values()), strict=True))
        return [made.get(place) for place in range(len(events))]

    def attach(self, accepted: Sequence[tuple[Turn, WindowTurn, Encoding | None]]) -> None:
        """Attach encodings to accepted turns: computed ahead, or now in one call."""
        made = iter(self._encode([turn for turn, _, ahead in accepted if ahead is None]))
        for _, kept, ahead in accepted:
            encoding = next(made) if ahead is None else ahead
            kept.vectors, kept.rationales = encoding.vectors, encoding.rationales
            kept.truncated = encoding.truncated
            if kept.intents is not None:
                kept.intents = encoding.intents

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
        roles = [turn.speaker_role for turn in turns]
        made = self._scorer.encode([turn.text for turn in turns], roles)
        hits = self.intent_reader.hits([encoding.vectors for encoding in made], roles)
        return [
            structs.replace(encoding, intents=found) if found else encoding
            for encoding, found in zip(made, hits, strict=True)
        ]
