"""Parses the file of bundles and routes; every error names the file and the line.

See ``docs/bundles.md``.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from stream_app.contracts.events import Domain
from stream_app.core.rules.languages import ANY, normalised
from stream_app.core.rules.routing import Route, RoutedBundle, Routes
from stream_app.core.rules.yaml_file import Fault, digest_of, line_of, load
from stream_app.errors import RapportError

VERSION: Final = 1
MAX_BUNDLES: Final = 50
MAX_ROUTES: Final = 500
MAX_NAMES: Final = 1000
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_RANGE: Final = re.compile(r"\*|[A-Za-z]{1,8}(?:[-_][A-Za-z0-9]{1,8})*")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_TOP: Final = ("version", "default", "bundles", "routes")
_BUNDLE: Final = ("folder", "languages", "digest")
_ROUTE: Final = ("bundle", "teams", "channels", "domains", "languages")


class RoutesFileError(RapportError):
    """An invalid file of bundles and routes; one line per error, ``file:line: message``."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = list(faults)


def parse(raw: bytes, name: str) -> Routes:
    """The bundles and routes in a file's bytes; ``name`` is how messages call the file.

    Raises:
        RoutesFileError: with all errors found.
    """
    reader = _Reader(name)
    found = reader.routes(raw)
    if found is None or reader.faults:
        ordered = sorted(reader.faults)
        raise RoutesFileError([f"{name}:{line}: {what}" for line, what in ordered])
    return found


class _Reader:
    """Collects the errors of a file, so that all are reported at once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.faults: list[tuple[int, str]] = []

    def routes(self, raw: bytes) -> Routes | None:
        body = self._loaded(raw)
        if body is None:
            return None
        self._known(body, _TOP)
        if body.get("version") != VERSION:
            self._fault(body, "version", f"`version: {VERSION}` is required")
        bundles = tuple(self._bundles(body))
        names = [bundle.name for bundle in bundles]
        routes = tuple(self._routes(body, names))
        default = body.get("default", CommentedMap())
        languages = None
        if isinstance(default, CommentedMap):
            self._known(default, ("languages",))
            languages = self._languages(default)
        else:
            self._fault(body, "default", "`default` is a mapping with `languages:`")
        return Routes(bundles, routes, languages, digest_of(raw))

    def _loaded(self, raw: bytes) -> CommentedMap | None:
        try:
            body = load(raw)
        except Fault as fault:
            self.faults.append((fault.line, fault.what))
            return None
        if not isinstance(body, CommentedMap):
            self.faults.append((1, "a file of routes begins with `version: 1`"))
            return None
        return body

    def _bundles(self, body: CommentedMap) -> Iterator[RoutedBundle]:
        found = body.get("bundles", CommentedMap())
        if not isinstance(found, CommentedMap):
            self._fault(body, "bundles", "`bundles` is a mapping from names to folders")
            return
        if len(found) > MAX_BUNDLES:
            self._fault(body, "bundles", f"more than {MAX_BUNDLES} bundles")
            return
        for name, item in found.items():
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                self._fault(found, name, "a name has lower-case letters, digits and hyphens")
                continue
            if not isinstance(item, CommentedMap):
                self._fault(found, name, f"`{name}` is a mapping with `folder:`")
                continue
            self._known(item, _BUNDLE)
            folder, digest = item.get("folder"), item.get("digest", "")
            if not isinstance(folder, str) or not folder.strip() or "\0" in folder:
                self._fault(found, name, f"`{name}` needs a `folder:`")
                continue
            if digest and not _DIGEST.fullmatch(str(digest)):
                self._fault(item, "digest", "`digest` has 64 hexadecimal digits")
            line = line_of(found, name, _start(found))
            yield RoutedBundle(name, folder, self._languages(item), str(digest), line)

    def _routes(self, body: CommentedMap, names: Sequence[str]) -> Iterator[Route]:
        found = body.get("routes", CommentedSeq())
        if not isinstance(found, CommentedSeq):
            self._fault(body, "routes", "`routes` is a list")
            return
        if len(found) > MAX_ROUTES:
            self._fault(body, "routes", f"more than {MAX_ROUTES} routes")
            return
        domains = {domain.value for domain in Domain}
        for item in found:
            if not isinstance(item, CommentedMap):
                self._fault(body, "routes", "a route is a mapping with `bundle:` and conditions")
                continue
            self._known(item, _ROUTE)
            bundle = item.get("bundle")
            if bundle not in names:
                key = "bundle" if "bundle" in item else next(iter(item), None)
                known = ", ".join(names) or "none"
                self._fault(item, key, f"`bundle` is one of those above ({known})")
                continue
            if len(item) < 2:  # the bundle and a condition
                self._fault(item, "bundle", "a route needs a condition, for example `teams:`")
                continue
            yield Route(
                bundle,
                frozenset(self._words(item, "teams")),
                frozenset(self._words(item, "channels")),
                frozenset(self._words(item, "domains", domains)),
                self._languages(item) or (),
            )

    def _languages(self, item: CommentedMap) -> tuple[str, ...] | None:
        if "languages" not in item:
            return None
        found = self._words(item, "languages")
        for each in found:
            if not _RANGE.fullmatch(each):
                self._fault(item, "languages", "a language is a BCP 47 tag, such as `de`, or `*`")
                return None
        return tuple(each if each == ANY else normalised(each) or each for each in found)

    def _words(
        self, item: CommentedMap, key: str, allowed: set[str] | None = None
    ) -> tuple[str, ...]:
        if key not in item:
            return ()
        found: Any = item[key]
        words = [found] if isinstance(found, str) else found
        texts = isinstance(words, list) and all(isinstance(w, str) and w for w in words)
        if not texts or not words or len(words) > MAX_NAMES:
            self._fault(item, key, f"`{key}` is a list of 1 to {MAX_NAMES} texts")
            return ()
        if allowed is not None and (unknown := sorted(set(words) - allowed)):
            known = ", ".join(sorted(allowed))
            self._fault(item, key, f"unknown in `{key}`: {', '.join(unknown)}; known are {known}")
        return tuple(str(word) for word in words)

    def _known(self, item: CommentedMap, keys: Sequence[str]) -> None:
        for key in item:
            if key not in keys:
                self._fault(item, key, f"unknown key `{key}`; known are {', '.join(keys)}")

    def _fault(self, item: CommentedMap, key: object, what: str) -> None:
        self.faults.append((line_of(item, key, _start(item)), what))


def _start(item: CommentedMap) -> int:
    return int(item.lc.line or 0) + 1
