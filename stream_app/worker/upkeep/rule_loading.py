"""Reloads the alert rules when their file, or the adopted version, has changed."""

from collections.abc import Callable, Iterable

import structlog

from stream_app.core.rules.intent_variables import with_intents_of
from stream_app.core.rules.rule_file import RuleFileError, parse
from stream_app.core.rules.rules import RulesDoNotFit, RuleSet
from stream_app.core.rules.variables import Catalogue
from stream_app.core.rules.yaml_file import digest_of
from stream_app.core.session.alerting import Alerting
from stream_app.store.alerts.rule_sources import RuleSource
from stream_app.worker.batches.metrics import WorkerMetrics

log = structlog.get_logger(__name__)


class RuleReloader:
    """Adopts changed rules; refuses invalid ones, and the old rules stay in force."""

    def __init__(
        self,
        source: RuleSource,
        alerting: Alerting,
        metrics: WorkerMetrics,
        routed: Callable[[], Iterable[Alerting]] = tuple,
    ) -> None:
        """``routed``: the alerting of the bundles that routes assign, which have the same rules."""
        self._source = source
        self._alerting = alerting
        self._routed = routed
        self._metrics = metrics
        self._last_digest = alerting.rules.digest
        self._last_faults = ""
        metrics.rules_loaded.set(len(alerting.rules.rules))

    def reload_if_changed(self) -> bool:
        """Adopt the text if it has changed and is valid; return whether it was adopted.

        Call it between batches, so that each batch is processed under one set of rules.

        Raises:
            StoreError: the database with the rules does not answer.
        """
        try:
            text = self._source.read()
            digest = digest_of(text.raw)
            if digest == self._last_digest:
                return False
            self._last_digest = digest
            rules = parse(text.raw, text.name, self._alerting.rules.catalogue)
            routed = self._fitted(rules)
        except (RuleFileError, RulesDoNotFit) as problem:
            self._refuse(problem)
            return False
        self._adopt(rules, routed)
        return True

    def use_catalogue(self, catalogue: Catalogue) -> None:
        """Read the rules again with other variables; they are adopted, changed or not.

        Raises:
            RuleFileError: they are not valid with these variables; the old ones stay in force.
            RulesDoNotFit: the same, with those of another bundle in force.
            StoreError: the database with the rules does not answer.
        """
        text = self._source.read()
        rules = parse(text.raw, text.name, catalogue)
        routed = self._fitted(rules)
        self._last_digest = digest_of(text.raw)
        if rules.digest != self._alerting.rules.digest:
            self._adopt(rules, routed)
        else:
            self._put_in_force(rules, routed)

    def _fitted(self, rules: RuleSet) -> list[tuple[Alerting, RuleSet]]:
        """The rules for the other bundles: with the variables of their heads and the same intents.

        Raises:
            RulesDoNotFit: they use variables that a bundle lacks.
        """
        return [
            (
                each,
                rules.for_bundle(
                    with_intents_of(rules.catalogue, each.rules.catalogue), each.bundle
                ),
            )
            for each in self._routed()
        ]

    def _put_in_force(self, rules: RuleSet, routed: list[tuple[Alerting, RuleSet]]) -> None:
        self._alerting.adopt(rules)
        for each, own in routed:
            each.adopt(own)

    def _adopt(self, rules: RuleSet, routed: list[tuple[Alerting, RuleSet]]) -> None:
        self._last_faults = ""
        self._put_in_force(rules, routed)
        self._metrics.rule_reloads.labels("adopted").inc()
        self._metrics.rules_loaded.set(len(rules.rules))
        log.info("rules.adopted", digest=rules.digest, rules=sorted(rules.names))

    def _refuse(self, problem: RuleFileError | RulesDoNotFit) -> None:
        """Log the faults once per text."""
        faults = "\n".join(problem.faults)
        if faults == self._last_faults:
            return
        self._last_faults = faults
        self._metrics.rule_reloads.labels("refused").inc()
        log.error("rules.refused", faults=problem.faults, in_force=self._alerting.rules.digest)
