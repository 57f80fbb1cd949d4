"""Reloads the intents when their file has changed, with the rules that use them."""

from collections.abc import Sequence
from pathlib import Path

import structlog

from stream_app.core.measures.heads import Head
from stream_app.core.measures.intents import IntentReader
from stream_app.core.pipeline.encodings import Encodings
from stream_app.core.rules.intent_file import IntentFileError, parse
from stream_app.core.rules.intent_variables import catalogue
from stream_app.core.rules.rule_file import RuleFileError
from stream_app.core.rules.rules import RulesDoNotFit
from stream_app.core.rules.yaml_file import digest_of
from stream_app.core.session.ports import Scorer
from stream_app.inference import intent_files, intents
from stream_app.worker.batches.metrics import WorkerMetrics
from stream_app.worker.upkeep.rule_loading import RuleReloader

log = structlog.get_logger(__name__)


class IntentReloader:
    """Adopts changed intents; refuses invalid ones, and the old intents stay in force."""

    def __init__(
        self,
        path: Path,
        scorer: Scorer,
        heads: Sequence[Head],
        encodings: Encodings,
        rules: RuleReloader,
        metrics: WorkerMetrics,
    ) -> None:
        self._path = path
        self._scorer = scorer
        self._heads = heads
        self._encodings = encodings
        self._rules = rules
        self._metrics = metrics
        self._ready: IntentReader | None = None
        self._last_digest = digest_of(intent_files.read_bytes(path))
        self._last_faults = ""
        metrics.intents_loaded.set(len(encodings.intent_reader.intents.intents))

    def prepare(self) -> bool:
        """Read the file if it has changed and encode its sentences; whether ``adopt`` is due.

        This takes as long as encoding some hundred turns; call it beside the batches.
        """
        try:
            raw = intent_files.read_bytes(self._path)
            digest = digest_of(raw)
            if digest != self._last_digest:
                self._last_digest, self._ready = digest, None
                found = parse(raw, str(self._path), intent_files.read_shipped)
                self._ready = intents.compare(found, self._scorer)
        except IntentFileError as problem:
            self._refuse(problem.faults)
        return self._ready is not None

    def adopt(self) -> bool:
        """Adopt what is prepared, if the rules are valid with it; return whether it was adopted.

        Call it between batches, so that each batch is processed under one set of rules.

        Raises:
            StoreError: the database with the rules does not answer.
        """
        ready = self._ready
        if ready is None:
            return False
        try:
            self._rules.use_catalogue(catalogue(self._heads, ready.intents))
        except (RuleFileError, RulesDoNotFit) as problem:
            self._refuse([f"not valid with these intents: {fault}" for fault in problem.faults])
            return False
        self._encodings.intent_reader = ready
        self._ready, self._last_faults = None, ""
        self._metrics.intent_reloads.labels("adopted").inc()
        self._metrics.intents_loaded.set(len(ready.intents.intents))
        log.info("intents.adopted", digest=ready.intents.digest, intents=len(ready.intents.intents))
        return True

    def _refuse(self, faults: list[str]) -> None:
        """Log the faults once."""
        text = "\n".join(faults)
        if text == self._last_faults:
            return
        self._last_faults = text
        self._metrics.intent_reloads.labels("refused").inc()
        in_force = self._encodings.intent_reader.intents.digest
        log.error("intents.refused", faults=faults, in_force=in_force)
