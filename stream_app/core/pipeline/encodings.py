"""The only module that encodes turns.

An encoding depends only on text, role and encoder, as do the intents found in it, so it can be
computed before the session's state is loaded. Turns not encoded ahead are encoded after the session
has accepted them. Bundles that share an encoder share its encodings: one call encodes the turns of
all their sessions.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, structs

from stream_app.contracts.events import Consent, ConsentStatus, Event, Turn
from stream_app.core.measures.intents import Hits, IntentReader, NoIntentReader
from stream_app.core.measures.window import WindowTurn, parts_of
from stream_app.core.pipeline.scoring_bundles import BundlesInForce, ScoringBundle
from stream_app.core.pipeline.session_bundles import address
from stream_app.core.session.environment import Policy
from stream_app.core.session.ports import Encoding, Scorer
from stream_app.core.session.session_state import SessionState
from stream_app.errors import ContractError


class ToEncode(Struct, frozen=True):
    """An accepted turn, its place in the window, and its encoding if it was encoded ahead.

    ``bundle``: of its session; None for the default one.
    """

    turn: Turn
    kept: WindowTurn
    ahead: Encoding | None = None
    bundle: ScoringBundle | None = None

    @property
    def encoder(self) -> str:
        """The encoder of its bundle."""
        return self.bundle.encoder if self.bundle is not None else ""


class Encodings:
    """Encodes ahead of acceptance if consent is known, otherwise after it.

    ``ahead`` and ``attach`` may run in two threads; each is called in log order. ``intent_reader``
    may be replaced at any time: turns that are encoded later are read with the new one.
    """

    def __init__(
        self, scorer: Scorer, policy: Policy, bundles: BundlesInForce | None = None
    ) -> None:
        self._scorer = scorer
        self.intent_reader: IntentReader = NoIntentReader()
        self._policy = policy
        self._stated: dict[str, bool] = {}
        self._assigned: dict[str, ScoringBundle] = {}
        self.bundles = bundles

    def ahead(
        self, events: Sequence[Event | ContractError], known: Callable[[str], SessionState | None]
    ) -> list[Encoding | None]:
        """Encode the turns of a batch that consent and a bundle cover, as far as is known.

        This is only a prediction: the session decides what is withheld, and its bundle. It is based
        on this batch, then on the previous batch, which may not be in the states yet, then on
        ``known``: the cached session state.
        """
        before, self._stated = self._stated, {}
        assigned, self._assigned = self._assigned, {}
        turns: dict[int, Turn] = {}
        bundles: list[ScoringBundle | None] = []
        for place, event in enumerate(events):
            if isinstance(event, Consent):
                self._stated[event.session_id] = event.status is ConsentStatus.GIVEN
            elif isinstance(event, Turn):
                if event.consent is not None:
                    self._stated[event.session_id] = event.consent
                if event.is_aside:
                    continue
                state = known(event.session_id)
                covered, bundle = self._bundle_ahead(event, assigned, state)
                if covered and self._is_covered(event.session_id, before, state):
                    turns[place] = event
                    bundles.append(bundle)
        made = dict(zip(turns, self._encode(turns.values(), bundles), strict=True))
        return [made.get(place) for place in range(len(events))]

    def attach(self, accepted: Sequence[ToEncode]) -> None:
        """Attach encodings to accepted turns: computed ahead by their encoder, or now."""
        missing = [
            item for item in accepted if item.ahead is None or item.ahead.encoder != item.encoder
        ]
        made = iter(self._encode([m.turn for m in missing], [m.bundle for m in missing]))
        late = {id(item) for item in missing}
        for item in accepted:
            encoding = next(made) if id(item) in late or item.ahead is None else item.ahead
            kept = item.kept
            kept.vectors, kept.rationales = encoding.vectors, encoding.rationales
            kept.truncated, kept.tokens = encoding.truncated, encoding.tokens
            kept.parts = encoding.parts
            if kept.intents is not None:
                kept.intents = encoding.intents

    def _bundle_ahead(
        self, turn: Turn, before: dict[str, ScoringBundle], state: SessionState | None
    ) -> tuple[bool, ScoringBundle | None]:
        """Whether a bundle covers the turn, and which; None for the default one."""
        bundles = self.bundles
        if bundles is None:
            return True, None
        key = turn.session_id
        found = self._assigned.get(key) or before.get(key)
        if found is None and state is not None and not state.undecided:
            found = bundles.of(state)
        covered = found is None or found.covers(turn.lang)
        found = found or bundles.choose(address(state, turn))
        if found is None:
            return False, None
        self._assigned[key] = found
        return covered, found

    def _is_covered(
        self, session_id: str, before: dict[str, bool], state: SessionState | None
    ) -> bool:
        for stated in (self._stated, before):
            if session_id in stated:
                return stated[session_id]
        return state is not None and self._policy.covers(state.consent)

    def _encode(
        self, turns: Iterable[Turn], bundles: Sequence[ScoringBundle | None]
    ) -> list[Encoding]:
        """Encode with one call for each encoder; results in the order of the turns."""
        turns = list(turns)
        by_encoder: dict[str, list[int]] = {"": []}
        scorers: dict[str, Scorer] = {"": self._scorer}
        for place, bundle in enumerate(bundles):
            encoder = bundle.encoder if bundle is not None else ""
            by_encoder.setdefault(encoder, []).append(place)
            if bundle is not None and encoder:
                scorers[encoder] = bundle.scorer
        found: dict[int, Encoding] = {}
        for encoder, places in by_encoder.items():
            some = [turns[place] for place in places]
            made = scorers[encoder].encode(
                [turn.text for turn in some], [turn.speaker_role for turn in some]
            )
            if encoder:
                made = [structs.replace(each, encoder=encoder) for each in made]
            else:
                made = self._with_intents(some, made)
            found.update(zip(places, made, strict=True))
        return [found[place] for place in range(len(turns))]

    def _with_intents(self, turns: Sequence[Turn], made: list[Encoding]) -> list[Encoding]:
        parts = [
            (place, vectors)
            for place, encoding in enumerate(made)
            for vectors in parts_of(encoding.vectors, encoding.parts)
        ]
        hits = self.intent_reader.hits(
            [vectors for _, vectors in parts], [turns[place].speaker_role for place, _ in parts]
        )
        found: list[Hits] = [{} for _ in made]
        for (place, _), of_part in zip(parts, hits, strict=True):
            for name, score in of_part.items():
                found[place][name] = max(score, found[place].get(name, score))
        return [
            structs.replace(encoding, intents=intents) if intents else encoding
            for encoding, intents in zip(made, found, strict=True)
        ]
