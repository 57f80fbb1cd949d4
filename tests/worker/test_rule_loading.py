"""Hot reload: a changed file is adopted between batches, an invalid one is refused."""

from pathlib import Path

import pytest
import structlog
from msgspec import structs

from stream_app.core.rules.rule_file import RuleFileError
from stream_app.core.rules.rules import RuleSet
from stream_app.core.rules.yaml_file import digest_of
from stream_app.store.alerts import rule_versions
from stream_app.store.alerts.rule_sources import AdoptedRules, RuleFile, load
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from stream_app.worker.batches.metrics import WorkerMetrics
from stream_app.worker.batches.outgoing import OutputTopics
from stream_app.worker.batches.processor import BatchProcessor, BatchSettings
from stream_app.worker.upkeep.rule_loading import RuleReloader
from tests.rule_texts import EAGER_TEXT, HEAD, risk_text, rule_text, rules_of
from tests.store.batches import end, pipeline, turn
from tests.store.reading import rows
from tests.worker.test_time_rules import take

NEVER_TEXT = risk_text(1.0, 1.0, 1)


class World:
    """A processor with a store, and a reloader of a rule file."""

    def __init__(self, store: Store, file: Path) -> None:
        self.store, self.file, self.metrics = store, file, WorkerMetrics()
        core = pipeline(load(RuleFile(file)))
        topics = OutputTopics("turn-scores", "session-scores", "alerts")
        self.worker = BatchProcessor(core, store, BatchSettings(topics, 1.0, 9), self.metrics)
        self.reloader = RuleReloader(RuleFile(file), core.environment.alerting, self.metrics)

    def reloads(self, outcome: str) -> float | None:
        return self.metrics.registry.get_sample_value(
            "rapport_rule_reloads_total", {"outcome": outcome}
        )

    def transitions(self) -> list[tuple[str, str, int, str]]:
        found = rows(self.store, tables.alerts)
        order = ["pending", "firing", "resolved", "inactive"]
        found.sort(key=lambda row: (row["rule"], row["episode"], order.index(row["state"])))
        return [(r["rule"], r["state"], r["episode"], r["rules_digest"]) for r in found]


@pytest.fixture
def world(open_prepared, tmp_path: Path) -> World:
    file = tmp_path / "rules.yaml"
    file.write_text(HEAD + NEVER_TEXT, "utf-8")
    return World(open_prepared(), file)


def test_a_changed_file_applies_to_open_sessions(world: World) -> None:
    take(world.worker, turn(0), turn(1))
    assert world.reloader.reload_if_changed() is False
    world.file.write_text(HEAD + EAGER_TEXT, "utf-8")
    take(world.worker, turn(2), turn(3))
    assert world.transitions() == []
    assert world.reloader.reload_if_changed() is True
    take(world.worker, turn(4), turn(5))
    digest = digest_of(world.file.read_bytes())
    assert world.transitions() == [
        ("low-empathy-risk", "pending", 1, digest),
        ("low-empathy-risk", "firing", 1, digest),
    ]
    assert world.reloads("adopted") == 1
    assert world.reloader.reload_if_changed() is False


def test_an_invalid_file_is_refused_once_and_the_old_rules_stay(world: World) -> None:
    world.file.write_text(HEAD + EAGER_TEXT, "utf-8")
    assert world.reloader.reload_if_changed() is True
    world.file.write_text(HEAD + EAGER_TEXT.replace("risk >=", "riks >="), "utf-8")
    with structlog.testing.capture_logs() as logs:
        assert [world.reloader.reload_if_changed() for _ in range(3)] == [False] * 3
    [line] = [entry for entry in logs if entry["event"] == "rules.refused"]
    assert f"{world.file}:6: `when`" in line["faults"][0]
    assert world.reloads("refused") == 1
    take(world.worker, turn(0), turn(1))
    assert [state for _, state, *_ in world.transitions()] == ["pending", "firing"]


def test_a_temporarily_missing_file_changes_nothing(world: World) -> None:
    text = world.file.read_text("utf-8")
    world.file.unlink()
    assert [world.reloader.reload_if_changed() for _ in range(2)] == [False, False]
    assert world.reloads("refused") == 1
    world.file.write_text(text, "utf-8")
    assert world.reloader.reload_if_changed() is False
    world.file.write_text(HEAD + EAGER_TEXT, "utf-8")
    assert world.reloader.reload_if_changed() is True


def test_a_removed_rule_resolves_its_alerts_and_returns_with_a_new_episode(world: World) -> None:
    world.file.write_text(HEAD + EAGER_TEXT, "utf-8")
    world.reloader.reload_if_changed()
    take(world.worker, turn(0), turn(1))
    world.file.write_text(HEAD + rule_text("other", when="false"), "utf-8")
    world.reloader.reload_if_changed()
    take(world.worker, turn(2), turn(3))
    world.file.write_text(HEAD + EAGER_TEXT, "utf-8")
    world.reloader.reload_if_changed()
    take(world.worker, turn(4), turn(5), end())
    assert [(state, episode) for _, state, episode, _ in world.transitions()] == [
        ("pending", 1),
        ("firing", 1),
        ("resolved", 1),
        ("pending", 2),
        ("firing", 2),
        ("resolved", 2),
    ]
    assert len({row["alert_id"] for row in rows(world.store, tables.alerts)}) == 6
    gone = [row["reason"] for row in rows(world.store, tables.alerts) if row["turns"] == [1]]
    assert "The rule is no longer in force." in gone


def test_unreadable_rules_at_start_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuleFileError, match=r"gone\.yaml: cannot be read"):
        load(RuleFile(tmp_path / "gone.yaml"))


class Exhausted:
    """An expression that exceeds the library's budget, as nested loops over lists do."""

    def eval(self, data: dict[str, object]) -> object:
        raise RuntimeError("INTERNAL: Iteration budget exceeded [INTERNAL]")


def test_a_failing_rule_is_reported_once_and_stops_nothing(world: World) -> None:
    [rule] = rules_of(rule_text("broken", when="turns > 1")).rules
    broken = structs.replace(rule.when, program=Exhausted(), test=None)
    rules = RuleSet((structs.replace(rule, when=broken), *rules_of(EAGER_TEXT).rules), "d" * 16)
    world.reloader._alerting.adopt(rules)
    with structlog.testing.capture_logs() as logs:
        take(world.worker, turn(0), turn(1), turn(2), turn(3))
        take(world.worker, turn(4), turn(5), end())
    assert {row[0] for row in world.transitions()} == {"low-empathy-risk"}
    failed = [line for line in logs if line["event"] == "rule.failed"]
    assert [(line["rule"], line["expression"]) for line in failed] == [("broken", "turns > 1")]
    counted = world.metrics.registry.get_sample_value
    assert counted("rapport_rule_failures_total", {"rule": "broken"}) == 3
    assert counted("rapport_rule_failures_total", {"rule": "low-empathy-risk"}) is None


def test_a_failure_that_depends_on_values_is_counted_and_logged(world: World) -> None:
    failing = "10 / late_turns > 3"
    world.file.write_text(HEAD + rule_text("broken", when=failing), "utf-8")
    assert world.reloader.reload_if_changed()
    with structlog.testing.capture_logs() as logs:
        take(world.worker, turn(0), turn(1))
    [failed] = [line for line in logs if line["event"] == "rule.failed"]
    assert (failed["rule"], failed["expression"]) == ("broken", failing)
    counted = world.metrics.registry.get_sample_value
    assert counted("rapport_rule_failures_total", {"rule": "broken"})


@pytest.mark.parametrize(
    "when", ["channel.matches('[')", "turns / 0 > 1", "9223372036854775807 + turns > 5"]
)
def test_a_rule_that_cannot_be_evaluated_is_not_adopted(world: World, when: str) -> None:
    world.file.write_text(HEAD + rule_text("broken", when=when), "utf-8")
    assert not world.reloader.reload_if_changed()
    assert world.reloads("refused") == 1


def test_a_rule_of_unbounded_cost_is_not_adopted(world: World) -> None:
    nested = "[1, 2].all(a, [1, 2].all(b, a + b > 0))"
    world.file.write_text(HEAD + rule_text("nested", when=nested), "utf-8")
    assert not world.reloader.reload_if_changed()
    assert world.reloads("refused") == 1
    take(world.worker, turn(0), turn(1))


def test_workers_read_the_newest_adopted_version_and_the_file_until_there_is_one(
    world: World,
) -> None:
    source = AdoptedRules(world.store, world.file)
    reloader = RuleReloader(source, world.reloader._alerting, world.metrics)
    first = rule_versions.save(world.store, HEAD + EAGER_TEXT, "ada", "try it")
    assert reloader.reload_if_changed() is False, "a proposal is not in force"
    rule_versions.adopt(world.store, first, "ada", "go")
    assert reloader.reload_if_changed() is True
    take(world.worker, turn(0), turn(1))
    assert {digest for *_, digest in world.transitions()} == {
        digest_of((HEAD + EAGER_TEXT).encode())
    }
    second = rule_versions.save(world.store, HEAD + NEVER_TEXT, "ada", "too many")
    rule_versions.adopt(world.store, second, "ada", "fewer")
    assert reloader.reload_if_changed() is True
    rule_versions.adopt(world.store, first, "ada", "back")
    assert reloader.reload_if_changed() is True
    assert reloader.reload_if_changed() is False
    assert world.reloader._alerting.rules.digest == digest_of((HEAD + EAGER_TEXT).encode())


def test_an_adopted_version_that_the_bundle_cannot_run_is_refused_by_its_number(
    world: World,
) -> None:
    bad = HEAD + EAGER_TEXT.replace("risk >=", "riks >=")
    number = rule_versions.save(world.store, bad, "ada", "typo")
    rule_versions.adopt(world.store, number, "ada", "typo")
    source = AdoptedRules(world.store, world.file)
    reloader = RuleReloader(source, world.reloader._alerting, world.metrics)
    with structlog.testing.capture_logs() as logs:
        assert reloader.reload_if_changed() is False
    [line] = [entry for entry in logs if entry["event"] == "rules.refused"]
    assert line["faults"][0].startswith(f"version {number}:6: `when`")
