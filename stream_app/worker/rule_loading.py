"""Loads the file of alert rules at start, and reloads it when it has changed."""

from collections.abc import Iterable
from pathlib import Path

import structlog

from stream_app.core.alerting import Alerting
from stream_app.core.head_variables import catalogue
from stream_app.core.heads import Head
from stream_app.core.rule_file import RuleFileError, digest_of, parse
from stream_app.core.rules import RuleSet
from stream_app.worker.metrics import WorkerMetrics

log = structlog.get_logger(__name__)


def load_rules(path: Path, heads: Iterable[Head] = ()) -> RuleSet:
    """Load the rules of a file, which may use variables of these heads.

    Raises:
        RuleFileError: the file cannot be read or is not valid; the message has file and line.
    """
    return parse(_raw(path), str(path), catalogue(heads))


class RuleReloader:
    """Adopts a changed file; refuses an invalid one, and the old rules stay in force."""

    def __init__(self, path: Path, alerting: Alerting, metrics: WorkerMetrics) -> None:
        self._path = path
        self._alerting = alerting
        self._metrics = metrics
        self._last_digest = alerting.rules.digest
        self._last_faults = ""
        metrics.rules_loaded.set(len(alerting.rules.rules))

    def reload_if_changed(self) -> bool:
        """Adopt the file if it has changed and is valid; return whether it was adopted.

        Call it between batches, so that each batch is processed under one set of rules.
        """
        try:
            raw = _raw(self._path)
            digest = digest_of(raw)
            if digest == self._last_digest:
                return False
            self._last_digest = digest
            rules = parse(raw, str(self._path), self._alerting.rules.catalogue)
        except RuleFileError as problem:
            self._refuse(problem)
            return False
        self._last_faults = ""
        self._alerting.adopt(rules)
        self._metrics.rule_reloads.labels("adopted").inc()
        self._metrics.rules_loaded.set(len(rules.rules))
        log.info("rules.adopted", digest=rules.digest, rules=sorted(rules.names))
        return True

    def _refuse(self, problem: RuleFileError) -> None:
        """Log the faults once per state of the file."""
        faults = "\n".join(problem.faults)
        if faults == self._last_faults:
            return
        self._last_faults = faults
        self._metrics.rule_reloads.labels("refused").inc()
        log.error("rules.refused", faults=problem.faults, in_force=self._alerting.rules.digest)


def _raw(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise RuleFileError([f"{path}: cannot be read: {problem.strerror}"]) from None
