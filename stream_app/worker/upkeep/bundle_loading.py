"""Loads the bundles that routes assign, and reloads them when their file or a bundle has changed.

A bundle that does not fit is refused with a sentence, and the others go on: what it would have
scored falls to the next route, or to the default bundle.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import structlog
from msgspec import Struct, structs

from stream_app.core.measures.baselines import BaselineBook, NoBaselines
from stream_app.core.pipeline.pipeline import Pipeline, environment_of
from stream_app.core.pipeline.scoring_bundles import BundlesInForce, ScoringBundle
from stream_app.core.rules import routes_file
from stream_app.core.rules.intent_variables import catalogue
from stream_app.core.rules.routes_file import RoutesFileError
from stream_app.core.rules.routing import NO_ROUTES, Routes
from stream_app.errors import RapportError, StoreError
from stream_app.inference.bundles.bundle import MANIFEST, shipped
from stream_app.inference.routed_bundles import BundleLoader, LoadedBundle, Loading, Refusal
from stream_app.inference.scorer import OnnxScorer
from stream_app.worker.batches.metrics import WorkerMetrics

log = structlog.get_logger(__name__)

Signature = tuple[str, tuple[tuple[int, int] | None, ...]]
"""The routes' digest, and time and size of each manifest."""


def read_routes(file: Path | None) -> Routes:
    """The routes in a file, none without one; folders are relative to the file.

    Raises:
        RoutesFileError: it cannot be read, or is not valid.
    """
    if file is None:
        return NO_ROUTES
    try:
        raw = file.read_bytes()
    except OSError as problem:
        raise RoutesFileError([f"{file}: cannot be read: {problem.strerror}"]) from None
    found = routes_file.parse(raw, str(file))
    own = shipped()
    placed = [
        each if each.folder in own else structs.replace(each, folder=str(file.parent / each.folder))
        for each in found.bundles
    ]
    return structs.replace(found, bundles=tuple(placed))


class _Pending(Struct, frozen=True):
    routes: Routes
    loading: Loading


class BundleReloader:
    """Keeps a pipeline's bundles as the routes file says.

    ``languages``: of the default bundle's manifest. ``register``: called before a bundle is
    adopted; returns its baselines, or raises ``RapportError`` to refuse it.
    """

    def __init__(
        self,
        file: Path | None,
        loader: BundleLoader,
        pipeline: Pipeline,
        languages: Sequence[str],
        register: Callable[[OnnxScorer], BaselineBook] = lambda _: NoBaselines(),
        metrics: WorkerMetrics | None = None,
    ) -> None:
        self._file = file
        self._loader = loader
        self._pipeline = pipeline
        self._languages = tuple(languages)
        self._register = register
        self._metrics = metrics
        self._seen: Signature | None = None
        self._faults: list[str] = []
        self._loaded: dict[str, LoadedBundle] = {}
        self._pending: _Pending | None = None
        self.refused: list[Refusal] = []

    def start(self) -> None:
        """Load and adopt the bundles before the first batch.

        Raises:
            RoutesFileError: the file cannot be read, or is not valid.
        """
        self._load(read_routes(self._file))
        self.adopt()

    def load_if_changed(self) -> bool:
        """Load what has changed, in any thread, while batches go on; return whether to adopt it."""
        if self._file is None:
            return False
        try:
            routes = read_routes(self._file)
        except RoutesFileError as problem:
            self._refuse_file(problem.faults)
            return False
        if _signature(routes) == self._seen:
            self._accept_file()
            return False
        self._load(routes)
        return True

    def adopt(self) -> bool:
        """Put what was loaded in force; call it between batches.

        Raises:
            StoreError: bundles cannot be registered now; they are loaded again the next time.
        """
        pending, self._pending = self._pending, None
        if pending is None:
            return False
        loaded = self._with_earlier(pending.loading)
        refused = list(pending.loading.refused)
        before = self._pipeline.bundles
        routed: dict[str, ScoringBundle] = {}
        for name, found in loaded.items():
            try:
                routed[name] = self._scoring_bundle(found, before.routed.get(name))
            except StoreError:  # no fault of the bundle
                self._seen = None
                raise
            except RapportError as problem:
                refused.append(Refusal(name, str(problem)))
        self._loaded = {name: found for name, found in loaded.items() if name in routed}
        languages = pending.routes.languages or self._languages
        default = structs.replace(before.default, languages=languages)
        self._pipeline.adopt(BundlesInForce(default, routed, pending.routes))
        self.refused, self._faults = refused, []
        self._report(pending.routes, routed)
        return True

    def _load(self, routes: Routes) -> None:
        self._seen = _signature(routes)
        self._pending = _Pending(routes, self._loader.load(routes.bundles, self._loaded))

    def _with_earlier(self, loading: Loading) -> dict[str, LoadedBundle]:
        """What was loaded; for a bundle whose new content was refused, the content in force."""
        kept = {
            refusal.name: self._loaded[refusal.name]
            for refusal in loading.refused
            if refusal.name in self._loaded
        }
        return {**loading.loaded, **kept}

    def _scoring_bundle(self, found: LoadedBundle, before: ScoringBundle | None) -> ScoringBundle:
        """The bundle with its rules and baselines; those in force if it is in force already.

        Raises:
            RapportError: the rules use heads that it lacks, or it cannot be registered.
        """
        if before is not None and before.scorer is found.scorer:
            return structs.replace(before, languages=found.languages)
        environment = self._pipeline.environment
        known = catalogue(found.scorer.heads, self._pipeline.encodings.intent_reader.intents)
        rules = environment.alerting.rules.for_bundle(known, found.scorer.bundle_id)
        baselines = self._register(found.scorer)
        policy = structs.replace(environment.policy, rules=rules)
        own = environment_of(found.scorer, policy, baselines)
        return ScoringBundle(found.scorer, own, found.encoder, found.digest, found.languages)

    def _report(self, routes: Routes, routed: Mapping[str, ScoringBundle]) -> None:
        for refusal in self.refused:
            log.error("bundle.refused", bundle=refusal.name, problem=refusal.problem)
        if self._file is not None:
            log.info("bundles.adopted", digest=routes.digest, bundles=list(routed))
        if self._metrics is not None:
            self._metrics.bundles.labels("in_force").set(1 + len(routed))
            self._metrics.bundles.labels("refused").set(len(self.refused))
            self._metrics.routes_invalid.set(0)

    def _accept_file(self) -> None:
        """Note that the file is valid, also if it is again as it was."""
        self._faults = []
        if self._metrics is not None:
            self._metrics.routes_invalid.set(0)

    def _refuse_file(self, faults: list[str]) -> None:
        """Log the faults once per text; the bundles in force stay."""
        if faults != self._faults:
            self._faults = faults
            log.error("routes.refused", faults=faults)
        if self._metrics is not None:
            self._metrics.routes_invalid.set(1)


def _signature(routes: Routes) -> Signature:
    return routes.digest, tuple(_stat(Path(each.folder)) for each in routes.bundles)


def _stat(folder: Path) -> tuple[int, int] | None:
    try:
        found = (folder / MANIFEST).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
