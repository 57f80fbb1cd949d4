"""Hot reload of intents: adopted between batches with the rules that use them, or refused."""

from pathlib import Path

import pytest
import structlog

from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.rules.intent_variables import catalogue
from stream_app.inference import intent_files, intents
from stream_app.store.alerts.rule_sources import RuleFile, load
from stream_app.worker.batches.metrics import WorkerMetrics
from stream_app.worker.upkeep.intent_loading import IntentReloader
from stream_app.worker.upkeep.rule_loading import RuleReloader
from tests.core.test_intent_file import HEAD, intent
from tests.fakes import FakeScorer
from tests.store.batches import pipeline

RULE = """version: 1
rules:
  - name: refund
    summary: A refund is asked for.
    severity: info
    when: intent.refund > 0.5
    for: 0s
"""
NO_RULE = "version: 1\nrules: []\n"


class World:
    """Reloaders of a file of intents and a file of rules, as a worker has them."""

    def __init__(self, folder: Path, rules: str = RULE) -> None:
        self.file, self.rule_file = folder / "intents.yaml", folder / "rules.yaml"
        self.file.write_text(HEAD + intent("refund"), "utf-8")
        self.rule_file.write_text(rules, "utf-8")
        scorer, self.metrics = FakeScorer(), WorkerMetrics()
        known = intent_files.load(self.file)
        source = RuleFile(self.rule_file)
        self.core: Pipeline = pipeline(load(source, [], known))
        self.core.encodings.intent_reader = intents.compare(known, scorer)
        self.rules = RuleReloader(source, self.core.environment.alerting, self.metrics)
        self.reloader = IntentReloader(
            self.file, scorer, [], self.core.encodings, self.rules, self.metrics
        )

    def reload(self) -> bool:
        return self.reloader.prepare() and self.reloader.adopt()

    @property
    def names(self) -> tuple[str, ...]:
        return self.core.encodings.intent_reader.intents.names

    def count(self, outcome: str) -> float | None:
        return self.metrics.registry.get_sample_value(
            "rapport_intent_reloads_total", {"outcome": outcome}
        )


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_changed_file_is_adopted(world: World) -> None:
    assert not world.reload()
    world.file.write_text(HEAD + intent("refund") + intent("cancel"), "utf-8")
    assert world.reload()
    assert world.names == ("refund", "cancel")
    assert "intent.cancel" in world.core.environment.alerting.rules.catalogue
    assert not world.reload()
    assert world.count("adopted") == 1


def test_a_broken_file_keeps_the_old_intents_and_is_reported_once(world: World) -> None:
    world.file.write_text(HEAD + intent("refund", count=1), "utf-8")
    with structlog.testing.capture_logs() as logs:
        assert not world.reload()
        assert not world.reload()
    assert world.names == ("refund",)
    [refused] = [each for each in logs if each["event"] == "intents.refused"]
    assert "3 to 10 sentences" in refused["faults"][0]
    world.file.unlink()
    assert not world.reload()
    assert world.count("refused") == 2


def test_intents_are_refused_while_a_rule_uses_one_that_they_lack(world: World) -> None:
    world.file.write_text(HEAD + intent("cancel"), "utf-8")
    assert not world.reload()
    assert world.names == ("refund",)
    world.rule_file.write_text(NO_RULE, "utf-8")
    assert world.reload()
    assert world.names == ("cancel",)
    assert world.core.environment.alerting.rules.rules == ()


def test_rules_that_wait_for_an_intent_are_adopted_with_it(world: World) -> None:
    world.rule_file.write_text(RULE.replace("intent.refund", "intent.cancel"), "utf-8")
    assert not world.rules.reload_if_changed()
    world.file.write_text(HEAD + intent("refund") + intent("cancel"), "utf-8")
    assert world.reload()
    [rule] = world.core.environment.alerting.rules.rules
    assert rule.when.source == "intent.cancel > 0.5"
    assert rule.when.names == ("intent.cancel",)
    assert "intent.cancel" in catalogue([], intent_files.load(world.file))
