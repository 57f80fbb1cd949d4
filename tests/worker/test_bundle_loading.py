"""Bundles of the routes file: loaded, refused one by one, added and removed without a restart."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from benchmarks.parts.head_bundles import copied
from stream_app import bootstrap
from stream_app.core.measures.baselines import BaselineBook, NoBaselines
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.rules.routes_file import RoutesFileError
from stream_app.core.rules.rule_file import parse
from stream_app.errors import BundleError, StoreUnavailable
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.bundles.bundle import MANIFEST, SHIPPED
from stream_app.inference.devices.provider_choice import Provider
from stream_app.inference.routed_bundles import BundleLoader
from stream_app.inference.scorer import OnnxScorer
from stream_app.settings import Settings
from stream_app.store.alerts.rule_sources import RuleFile, load
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from stream_app.worker.batches.metrics import WorkerMetrics
from stream_app.worker.batches.outgoing import OutputTopics
from stream_app.worker.batches.processor import BatchProcessor, BatchSettings
from stream_app.worker.upkeep.bundle_loading import BundleReloader
from stream_app.worker.upkeep.rule_loading import RuleReloader
from tests.fakes import received, turn
from tests.rule_texts import HEAD, rule_text
from tests.store.reading import rows
from tests.worker.processors import handle

Open = Callable[..., Store]


@pytest.fixture(scope="module")
def scorer() -> OnnxScorer:
    return OnnxScorer(bundles.load(SHIPPED / "nano"), Provider.CPU)


class World:
    """A folder of bundles with their routes, and what loads them."""

    def __init__(self, scorer: OnnxScorer, folder: Path) -> None:
        self.scorer, self.folder = scorer, folder
        self.file = folder / "routes.yaml"
        self.metrics = WorkerMetrics()
        policy = bootstrap.policy(Settings(bundle=SHIPPED / "nano"), scorer)
        self.pipeline = Pipeline(scorer, policy)
        self.reloader = self.reloader_of(self.pipeline)

    def reloader_of(self, pipeline: Pipeline) -> BundleReloader:
        loader = BundleLoader(self.scorer, Provider.CPU, 1, 6)
        return BundleReloader(self.file, loader, pipeline, ["en"], metrics=self.metrics)

    def heads(self, place: str, /, **changes: Any) -> Path:
        """A head bundle with the default heads; a callable changes a part of its manifest."""
        folder = copied(self.scorer.bundle, self.folder / place, place)
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        for key, value in changes.items():
            manifest[key] = value(manifest[key]) if callable(value) else value
        (folder / MANIFEST).write_text(json.dumps(manifest), "utf-8")
        return folder

    def route(self, *names: str, **folders: str) -> None:
        """Write the file: sessions of the team of the same name."""
        every = {name: {"folder": name} for name in names}
        every |= {name: {"folder": folder} for name, folder in folders.items()}
        routes = [{"bundle": name, "teams": [name]} for name in every]
        content = {"version": 1, "bundles": every, "routes": routes}
        self.file.write_text(json.dumps(content), "utf-8")

    @property
    def names(self) -> list[str]:
        return list(self.pipeline.bundles.routed)

    def problem(self, name: str) -> str:
        return next(each.problem for each in self.reloader.refused if each.name == name)

    def gauge(self, state: str) -> float | None:
        return self.metrics.registry.get_sample_value("rapport_bundles", {"state": state})


@pytest.fixture
def world(scorer: OnnxScorer, tmp_path: Path) -> World:
    return World(scorer, tmp_path)


def test_each_bundle_is_refused_on_its_own_with_a_sentence(world: World) -> None:
    world.heads("north")
    (world.heads("damaged") / "head.onnx").write_bytes(b"no graph")
    other = {"sha256": "0" * 64, "tokenizer_sha256": "0" * 64, "bundle": "other-1-int8"}
    world.heads("foreign", shared_encoder=other)
    world.heads("twin", name="north")
    world.heads("narrow", head=lambda head: {**head, "slots": 4})
    world.heads("old", format=1)
    (world.folder / "none").mkdir()
    (world.folder / "text").mkdir()
    (world.folder / "text" / MANIFEST).write_text("[]", "utf-8")
    world.route(
        *("damaged", "foreign", "north", "twin", "narrow", "old", "none", "text"), nano="nano"
    )
    world.reloader.start()
    assert world.names == ["north"]
    assert [each.name for each in world.reloader.refused] == [
        *("damaged", "foreign", "twin", "narrow", "old", "none", "text", "nano"),
    ]
    assert "is damaged: SHA-256" in world.problem("damaged")
    assert "was made for another encoder (other-1-int8" in world.problem("foreign")
    assert "has the id north-" in world.problem("twin")
    assert "windows of 4 neighbouring turns; those of the service have 6" in world.problem("narrow")
    assert "bundle format 1" in world.problem("old")
    assert "no model bundle at" in world.problem("none")
    assert "is not a bundle manifest" in world.problem("text")
    assert "scores need a name or version of their own" in world.problem("nano")
    assert (world.gauge("in_force"), world.gauge("refused")) == (2.0, 8.0)


def test_a_graph_that_does_not_fit_is_refused_before_it_scores(world: World) -> None:
    """Its hash is right; ONNX Runtime finds out."""
    folder = world.heads("broken")
    (folder / "head.onnx").write_bytes(b"no graph")
    content = json.loads((folder / MANIFEST).read_text("utf-8"))
    digest = hashlib.sha256(b"no graph").hexdigest()
    content["files"]["head.onnx"] = digest
    (folder / MANIFEST).write_text(json.dumps(content), "utf-8")
    world.heads("missing", heads=lambda heads: [*heads, {**heads[0], "name": "warmth"}])
    world.route("broken", "missing")
    world.reloader.start()
    assert "cannot score" in world.problem("broken")
    assert "cannot score" in world.problem("missing")


def test_bundles_are_added_and_removed_without_a_restart(world: World) -> None:
    world.heads("north")
    world.route("north")
    world.reloader.start()
    north = world.pipeline.bundles.routed["north"]
    assert north.scorer.encoder is world.scorer.encoder  # type: ignore[attr-defined]
    assert not world.reloader.load_if_changed()
    world.heads("south")
    world.route("north", "south")
    assert world.reloader.load_if_changed()
    assert world.names == ["north"]  # not before it is adopted, between batches
    assert world.reloader.adopt()
    assert world.names == ["north", "south"]
    assert world.pipeline.bundles.routed["north"].environment is north.environment
    world.route("south")
    assert world.reloader.load_if_changed()
    world.reloader.adopt()
    assert world.names == ["south"]


def test_an_invalid_file_leaves_the_bundles_in_force(world: World) -> None:
    world.heads("north")
    world.route("north")
    world.reloader.start()
    world.file.write_text("version: 1\nbundles: north\n", "utf-8")
    assert not world.reloader.load_if_changed()
    world.file.unlink()
    assert not world.reloader.load_if_changed()
    assert world.names == ["north"]
    registry = world.metrics.registry
    assert registry.get_sample_value("rapport_routes_invalid") == 1.0
    world.route("north")
    assert not world.reloader.load_if_changed()  # it is as before
    assert registry.get_sample_value("rapport_routes_invalid") == 0.0
    world.file.unlink()
    with pytest.raises(RoutesFileError, match="cannot be read"):
        world.reloader_of(world.pipeline).start()


def test_a_changed_bundle_is_adopted_and_a_damaged_one_leaves_its_predecessor(
    world: World,
) -> None:
    folder = world.heads("north")
    world.route("north")
    world.reloader.start()
    before = world.pipeline.bundles.routed["north"]
    content = json.loads((folder / MANIFEST).read_text("utf-8"))
    (folder / MANIFEST).write_text(json.dumps({**content, "version": "9"}), "utf-8")
    assert world.reloader.load_if_changed()
    world.reloader.adopt()
    after = world.pipeline.bundles.routed["north"]
    assert after.environment.bundle_id == "north-9-int8"
    assert after.digest != before.digest
    (folder / MANIFEST).write_text("{", "utf-8")
    assert world.reloader.load_if_changed()
    world.reloader.adopt()
    assert world.pipeline.bundles.routed["north"].digest == after.digest
    assert "is not a bundle manifest" in world.problem("north")


def test_only_the_pinned_digest_is_accepted(world: World) -> None:
    world.heads("north")
    world.file.write_text(
        json.dumps({"version": 1, "bundles": {"north": {"folder": "north", "digest": "0" * 64}}}),
        "utf-8",
    )
    world.reloader.start()
    assert "not the accepted one, 0000" in world.problem("north")


def test_rules_and_bundles_must_fit_each_other(world: World, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(HEAD, "utf-8")
    heads = {head.name: head for head in world.scorer.heads}
    with_evidence = [name for name, head in heads.items() if head.evidence]
    lacking = with_evidence[0]
    label = heads[lacking].evidence[0]
    dimension = "client" if heads[lacking].dimension.value != "expressed" else "expressed"
    variable = f"{dimension}.{lacking}.{label}"
    file.write_text(HEAD + rule_text("uses", when=f"{variable} >= 0.5", for_="1 turn"), "utf-8")
    rules = load(RuleFile(file), world.scorer.heads)

    def without(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**head, "evidence": []} for head in found]

    world.heads("north")
    world.heads("plain", heads=without)
    world.route("north", "plain")
    world.pipeline.environment.alerting.adopt(rules)
    world.reloader.start()
    assert world.names == ["north"]
    assert f"lacks {variable}, which the rule uses uses" in world.problem("plain")
    world.pipeline.environment.alerting.adopt(
        parse(HEAD.encode() + b"  []\n", "r", rules.catalogue)
    )
    world.route("plain")
    world.reloader.load_if_changed()
    world.reloader.adopt()
    assert world.names == ["plain"]
    routed = world.pipeline.bundles.routed
    reloader = RuleReloader(
        RuleFile(file),
        world.pipeline.environment.alerting,
        world.metrics,
        lambda: [each.environment.alerting for each in routed.values()],
    )
    assert not reloader.reload_if_changed()  # the rules are refused, the old ones stay
    assert world.pipeline.environment.alerting.rules.names == frozenset()


def test_sessions_are_stored_under_their_bundle_and_go_on_after_a_restart(
    world: World, open_prepared: Open
) -> None:
    store = open_prepared()
    world.heads("north")
    world.route("north")
    world.reloader.start()

    def worker(pipeline: Pipeline) -> BatchProcessor:
        topics = OutputTopics("turn-scores", "session-scores", "alerts")
        return BatchProcessor(pipeline, store, BatchSettings(topics, 1.0, 9), world.metrics)

    first = worker(world.pipeline)
    handle(first, [turn("n", 0, team="north"), turn("d", 0), turn("f", 0, lang="fr")])
    first.self_test.run()
    again = Pipeline(world.scorer, world.pipeline.environment.policy)
    world.reloader_of(again).start()
    handle(worker(again), [turn("n", 1), turn("d", 1), turn("f", 1)])
    own, north = world.scorer.bundle_id, "north-2.1.0-int8"
    scored = {
        (row["session_id"], row["seq"], row["bundle"]) for row in rows(store, tables.turn_scores)
    }
    assert scored == {("n", 0, north), ("n", 1, north), ("d", 0, own), ("d", 1, own)}
    unscored = {(row["session_id"], row["unscored"]) for row in rows(store, tables.turns)}
    assert unscored == {("n", None), ("d", None), ("f", "language")}
    counts = {
        row["session_id"]: row["unscored_turns"] for row in rows(store, tables.session_scores)
    }
    assert counts == {"n": 0, "d": 0, "f": 2}
    found = world.metrics.registry.get_sample_value("rapport_events_total", {"fate": "language"})
    assert found == 2.0
    assert store.states.open_without_their_bundle(own, [own, north]) == {}
    assert store.states.open_without_their_bundle(own, [own]) == {north: 1}


def test_another_content_under_a_known_id_is_refused(world: World, open_prepared: Open) -> None:
    store = open_prepared()
    folder = world.heads("north")
    world.route("north")
    loader = BundleLoader(world.scorer, Provider.CPU, 1, 6)
    reloader = BundleReloader(
        world.file, loader, world.pipeline, ["en"], lambda s: bootstrap.register_bundle(store, s)
    )
    reloader.start()
    assert reloader.refused == []
    content = json.loads((folder / MANIFEST).read_text("utf-8"))
    (folder / MANIFEST).write_text(json.dumps({**content, "metrics": {}}), "utf-8")
    fresh = BundleReloader(
        world.file, loader, world.pipeline, ["en"], lambda s: bootstrap.register_bundle(store, s)
    )
    fresh.start()
    assert "another bundle has scored as north-" in fresh.refused[0].problem


def test_a_database_that_does_not_answer_refuses_no_bundle(world: World) -> None:
    answers = iter([StoreUnavailable("away")])

    def register(_: OnnxScorer) -> BaselineBook:
        for problem in answers:
            raise problem
        return NoBaselines()

    world.heads("north")
    world.file.write_text("version: 1\n", "utf-8")
    loader = BundleLoader(world.scorer, Provider.CPU, 1, 6)
    reloader = BundleReloader(world.file, loader, world.pipeline, ["en"], register)
    reloader.start()
    world.route("north")
    assert reloader.load_if_changed()
    with pytest.raises(StoreUnavailable):
        reloader.adopt()
    assert world.names == []
    assert reloader.load_if_changed()
    assert reloader.adopt()
    assert world.names == ["north"]


def test_the_same_log_scores_alike_through_heads_of_the_same_weights(world: World) -> None:
    """A head bundle with the default bundle's own heads gives its scores."""
    world.heads("north")
    world.route("north")
    world.reloader.start()
    log = [turn("s", seq, team="north") for seq in range(5)]
    through_heads = world.pipeline.process(received(log), {})
    default = Pipeline(world.scorer, world.pipeline.environment.policy).process(received(log), {})
    alike = [structs.replace(score, bundle="") for score in through_heads.turn_scores]
    assert alike == [structs.replace(score, bundle="") for score in default.turn_scores]


def test_the_default_bundle_cannot_be_a_head_bundle(world: World) -> None:
    with pytest.raises(BundleError, match="RAPPORT_BUNDLE_ROUTES"):
        bundles.load(world.heads("north"))
