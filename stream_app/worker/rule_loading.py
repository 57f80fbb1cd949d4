"""The file of rules: read at start, and again whenever it has changed."""

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
    """The rules of a file, which may use variables of these heads.

    Raises:
        RuleFileError: it cannot be read or used; the message names file and line.
    """
    return parse(_raw(path), str(path), catalogue(heads))


class RuleReloader:
    """Brings a changed file into force; a broken one is refused and the old rules go on."""

    def __init__(self, path: Path, alerting: Alerting, metrics: WorkerMetrics) -> None:
        self._path = path
        self._alerting = alerting
        self._metrics = metrics
        self._seen = alerting.rules.digest
        self._said = ""
        metrics.rules_loaded.set(len(alerting.rules.rules))

    def reload_if_changed(self) -> bool:
        """Adopt the file if it is another one than before; whether it was adopted.

        Call between batches: a batch has the same rules from its beginning to its end.
        """
        try:
            raw = _raw(self._path)
            digest = digest_of(raw)
            if digest == self._seen:
                return False
            self._seen = digest
            rules = parse(raw, str(self._path), self._alerting.rules.catalogue)
        except RuleFileError as problem:
            self._refuse(problem)
            return False
        self._said = ""
        self._alerting.adopt(rules)
        self._metrics.rule_reloads.labels("adopted").inc()
        self._metrics.rules_loaded.set(len(rules.rules))
        log.info("rules.adopted", digest=rules.digest, rules=sorted(rules.names))
        return True

    def _refuse(self, problem: RuleFileError) -> None:
        """Say it once for each state of the file."""
        said = "\n".join(problem.faults)
        if said == self._said:
            return
        self._said = said
        self._metrics.rule_reloads.labels("refused").inc()
        log.error("rules.refused", faults=problem.faults, in_force=self._alerting.rules.digest)


def _raw(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise RuleFileError([f"{path}: cannot be read: {problem.strerror}"]) from None
