"""Sessions of a head bundle have the same intents, and rules on them, as those of the default."""

from pathlib import Path

import pytest

from stream_app.inference import intent_files, intents
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.bundles.bundle import SHIPPED
from stream_app.inference.devices.provider_choice import Provider
from stream_app.inference.scorer import OnnxScorer
from stream_app.store.alerts.rule_sources import RuleFile, load
from stream_app.worker.upkeep.intent_loading import IntentReloader
from stream_app.worker.upkeep.rule_loading import RuleReloader
from tests.core.test_intent_file import HEAD, intent
from tests.fakes import received, turn
from tests.worker.test_bundle_loading import World
from tests.worker.test_intent_loading import RULE

EXAMPLE = "I want my money back, 1 refund."


class Routed:
    """A head bundle for the team north beside the default one, with intents and rules."""

    def __init__(self, folder: Path) -> None:
        self.intents, self.rules = folder / "intents.yaml", folder / "rules.yaml"
        self.intents.write_text(HEAD + intent("refund"), "utf-8")
        self.rules.write_text(RULE, "utf-8")
        scorer = OnnxScorer(bundles.load(SHIPPED / "nano"), Provider.CPU)
        world = World(scorer, folder)
        self.core = core = world.pipeline
        known, source = intent_files.load(self.intents), RuleFile(self.rules)
        core.encodings.intent_reader = intents.compare(known, scorer)
        default = core.environment.alerting
        default.adopt(load(source, scorer.heads, known))
        world.heads("north")
        world.route("north")
        world.reloader.start()
        self.north = core.bundles.routed["north"].environment.alerting
        rules = RuleReloader(source, default, world.metrics, lambda: [self.north])
        self.reloader = IntentReloader(
            self.intents, scorer, scorer.heads, core.encodings, rules, world.metrics
        )


@pytest.fixture
def routed(tmp_path: Path) -> Routed:
    return Routed(tmp_path)


def test_its_turns_have_intents_that_start_rules(routed: Routed) -> None:
    log = [turn(name, 0, text=EXAMPLE, team=name) for name in ("north", "south")]
    found = routed.core.process(received(log), {})
    assert {score.session_id: list(score.intents) for score in found.turn_scores} == {
        "north": ["refund"],
        "south": ["refund"],
    }
    assert len({score.bundle for score in found.turn_scores}) == 2
    assert {(alert.session_id, alert.rule) for alert in found.alerts} == {
        ("north", "refund"),
        ("south", "refund"),
    }


def test_changed_intents_change_the_variables_of_both(routed: Routed) -> None:
    routed.intents.write_text(HEAD + intent("cancel"), "utf-8")
    routed.rules.write_text(RULE.replace("intent.refund", "intent.cancel"), "utf-8")
    assert routed.reloader.prepare()
    assert routed.reloader.adopt()
    for alerting in (routed.core.environment.alerting, routed.north):
        names = alerting.rules.catalogue.keys()
        assert ("intent.cancel" in names, "intent.refund" in names) == (True, False)
        assert alerting.rules.rules[0].variables == {"intent.cancel"}
