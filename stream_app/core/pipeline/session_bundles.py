"""Which bundle scores a session, also after its bundle was removed.

The first turn in a language with a bundle decides, and the session keeps the bundle. If it is
removed while the session is open, its alerts end and the session continues with the bundle that the
routes now give: with its consent, its facts and the places of its turns, but without measures,
because scores of two bundles are never mixed.
"""

from collections.abc import Sequence

from msgspec import structs

from stream_app.contracts.events import Event, Turn
from stream_app.contracts.scores import Alert, Unscored
from stream_app.core.measures.aggregates import Aggregates
from stream_app.core.measures.baselines import Pinned
from stream_app.core.measures.exchanges import Exchanges
from stream_app.core.measures.voices import Voices
from stream_app.core.measures.watch import Watch
from stream_app.core.pipeline.scoring_bundles import BundlesInForce, ScoringBundle
from stream_app.core.rules.routing import Addressed
from stream_app.core.session.alerting import end_with_bundle
from stream_app.core.session.session_state import SessionState


def address(state: SessionState | None, turn: Turn | None = None) -> Addressed:
    """Return the facts that routes read: what the turns have stated, then this turn."""
    found = Addressed()
    if state is not None:
        found = Addressed(state.team, state.channel, state.domain, state.lang)
    if turn is None:
        return found
    domain = turn.domain.value if turn.domain else None
    return Addressed(
        found.team or turn.team,
        found.channel or turn.channel,
        found.domain or domain,
        turn.lang or found.lang,
    )


def ranges_of(state: SessionState, bundles: BundlesInForce) -> Sequence[str]:
    """The languages that a session's next turn may be scored in."""
    if state.undecided:
        return [each for bundle in bundles for each in bundle.languages]
    return (bundles.of(state) or bundles.default).languages


def at_event(
    state: SessionState, event: Event, bundles: BundlesInForce, language: str | None = None
) -> tuple[ScoringBundle, Unscored | None]:
    """The bundle of a session at an event, and why a turn must not be scored.

    The default bundle stands in as long as the session's is undecided. Once it is decided, a turn
    whose ``language`` is not known is in one of the bundle's, whatever other turns have stated. An
    aside needs none.
    """
    if isinstance(event, Turn) and event.is_aside:
        return bundles.of(state) or bundles.default, None
    if isinstance(event, Turn) and state.undecided:
        found = bundles.choose(address(state, structs.replace(event, lang=language or event.lang)))
        return found or bundles.default, None if found is not None else Unscored.LANGUAGE
    bundle = bundles.of(state) or bundles.default
    covered = not isinstance(event, Turn) or bundle.covers(language)
    return bundle, None if covered else Unscored.LANGUAGE


def assign(state: SessionState, bundle: ScoringBundle, bundles: BundlesInForce) -> None:
    """Let the bundle score the session from now on."""
    state.undecided = False
    state.chosen = None if bundle is bundles.default else bundle.choice


def leave_removed(state: SessionState, bundles: BundlesInForce) -> list[Alert] | None:
    """Move a session away from a bundle that is no longer in force; None if it is in force.

    Returns the transitions that end its alerts.
    """
    chosen = state.chosen
    if chosen is None or bundles.of(state) is not None:
        return None
    alerts = end_with_bundle(state, chosen.bundle)
    found = bundles.choose(address(state))
    window = state.window
    window.unfinished.clear()
    if found is None or found.encoder != chosen.encoder:
        window.history.clear()
        window.waiting = {
            seq: structs.replace(
                turn, vectors=b"", rationales={}, tokens=b"", parts=b"", withheld=True
            )
            for seq, turn in window.waiting.items()
        }
    state.aggregates, state.exchanges = Aggregates(), Exchanges()
    state.voices = Voices()
    state.watch, state.baselines = Watch(), Pinned()
    state.risk, state.outcomes, state.miti = None, {}, None
    state.chosen, state.undecided = None, True
    if found is not None:
        assign(state, found, bundles)
    return alerts
