"""The bundles in force: the default one, and those that routes assign to sessions."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from stream_app.core.rules import languages
from stream_app.core.rules.languages import ANY
from stream_app.core.rules.routing import NO_ROUTES, Addressed, Routes
from stream_app.core.session.environment import Environment
from stream_app.core.session.ports import Scorer
from stream_app.core.session.session_state import BundleChoice, SessionState


class ScoringBundle(Struct, frozen=True, eq=False):
    """A bundle with what its sessions need.

    ``encoder``: identifies encoder and tokeniser; bundles with the same value share encodings.
    Empty for the default bundle's. ``languages``: ranges of the tags that it scores.
    """

    scorer: Scorer
    environment: Environment
    encoder: str = ""
    digest: str = ""
    languages: tuple[str, ...] = (ANY,)

    @property
    def choice(self) -> BundleChoice:
        """Return what a session's state stores of its bundle."""
        return BundleChoice(self.environment.bundle_id, self.digest, self.encoder)

    def covers(self, lang: str | None) -> bool:
        """Whether it scores turns with this language tag."""
        return languages.covers(self.languages, lang)


class BundlesInForce(Struct, frozen=True, eq=False):
    """Replaced as a whole between batches; ``routed`` by the name in the routes file."""

    default: ScoringBundle
    routed: Mapping[str, ScoringBundle] = {}
    routes: Routes = NO_ROUTES

    def __iter__(self) -> Iterator[ScoringBundle]:
        yield self.default
        yield from self.routed.values()

    def choose(self, session: Addressed) -> ScoringBundle | None:
        """The bundle of a new session; None if no bundle covers its language.

        Routes to bundles that were refused, or do not cover the language, are passed over.
        """
        names = self.routes.candidates(session)
        routed = (self.routed[name] for name in names if name in self.routed)
        found = (each for each in (*routed, self.default) if each.covers(session.lang))
        return next(found, None)

    def of(self, state: SessionState) -> ScoringBundle | None:
        """The bundle of a session; None if it is no longer in force, or has other content."""
        if state.chosen is None:
            return self.default
        return next((each for each in self.routed.values() if each.choice == state.chosen), None)
