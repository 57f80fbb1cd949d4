"""Which bundle scores a session: routes by team, channel, domain and language.

The first turn in a language that a bundle covers decides; the session keeps that bundle.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from stream_app.core.rules.languages import covers, normalised


class RoutedBundle(Struct, frozen=True):
    """A bundle of the routes file.

    ``languages``: None for those of its manifest. ``digest``: the only accepted one; empty accepts
    all. ``line``: where the file names it.
    """

    name: str
    folder: str
    languages: tuple[str, ...] | None = None
    digest: str = ""
    line: int = 0


class Addressed(Struct, frozen=True):
    """Facts that a session's bundle depends on; None where no turn has stated one yet."""

    team: str | None = None
    channel: str | None = None
    domain: str | None = None
    lang: str | None = None


class Route(Struct, frozen=True):
    """Sessions of a bundle: all that match each condition that is not empty."""

    bundle: str
    teams: frozenset[str] = frozenset()
    channels: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    languages: tuple[str, ...] = ()

    def matches(self, session: Addressed) -> bool:
        """Whether the route is for this session.

        A route for languages needs a stated one:

        >>> german = Route("german", languages=("de",))
        >>> [german.matches(Addressed(lang=lang)) for lang in ("de-CH", "en", None)]
        [True, False, False]
        """
        named = (
            (self.teams, session.team),
            (self.channels, session.channel),
            (self.domains, session.domain),
        )
        if any(allowed and value not in allowed for allowed, value in named):
            return False
        if not self.languages:
            return True
        return normalised(session.lang) is not None and covers(self.languages, session.lang)


class Routes(Struct, frozen=True):
    """The routes in force; ``languages`` of the default bundle, None for those of its manifest."""

    bundles: Sequence[RoutedBundle] = ()
    routes: Sequence[Route] = ()
    languages: tuple[str, ...] | None = None
    digest: str = ""

    def candidates(self, session: Addressed) -> Iterator[str]:
        """Names of the bundles whose routes match, in the order of the file."""
        return (route.bundle for route in self.routes if route.matches(session))


NO_ROUTES: Final = Routes()
