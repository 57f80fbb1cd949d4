"""Tables and the document from folds: all figures come from the predictions."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from typer.testing import CliRunner

from models.data import load_corpora
from models.data.split import fold_of, key_of
from models.evaluate import __main__ as command
from models.evaluate import choices, folds, predict
from models.evaluate.folds import Fold
from models.evaluate.predict import HeadOutputs, Predictions, RationaleOutput
from models.fit.calibrate import Calibration, mask
from models.labels import HEADS
from models.model import multitask
from models.model.batches import Segment, overlaps
from models.pages import document, report, sections, tables
from models.pages.published import TARGETS, Target
from research.recipe import ablation
from stream_app.inference import rationale
from stream_app.inference.bundles.bundle import Dimension, HeadKind, HeadSpec
from stream_app.inference.bundles.calibration import calibrate, choose_labels
from tests.models.tiny import tiny_model, tiny_tokenizer, write_corpora


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpora(tmp_path_factory.mktemp("corpora"), size=30)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two of three folds, with untrained models."""
    folder = tmp_path_factory.mktemp("folds")
    for number in (0, 2):
        multitask.save(tiny_model(number), tiny_tokenizer(), folder / str(number), {"seed": 17})
    (folder / "folds.json").write_text('{"folds": 3, "seed": 17}')
    (folder / "1").mkdir()
    return folder


def test_finished_folds_are_those_with_a_model(trained: Path) -> None:
    assert folds.finished(trained) == [0, 2]
    assert folds.plan(trained) == (3, 17)
    assert folds.plan(trained / "nowhere") == (5, 17)


def test_every_item_is_scored_in_one_fold(corpora: Path) -> None:
    """Including human-labelled lines, which are never used for training."""
    conversations = load_corpora(corpora)
    parts = [folds.held_out(conversations, number, 3, 17) for number in range(3)]
    tested = [key_of(item) for part in parts for item in part]
    assert len(tested) == len(set(tested))
    people = {key_of(item) for item in conversations if item.part == "test"}
    assert people <= set(tested)
    for number, part in enumerate(parts):
        assert all(fold_of(key_of(item), 17, 3) == number for item in part)


def test_predictions_are_cached_until_the_model_changes(
    corpora: Path, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversations = load_corpora(corpora)
    first = folds.load_folds(trained, conversations)
    calls = []
    monkeypatch.setattr(folds, "predict_views", lambda *given: calls.append(given))
    again = folds.load_folds(trained, conversations)
    assert not calls
    for one, other in zip(first, again, strict=True):
        assert one.number == other.number
        for view, predictions in one.views.items():
            kept = other.views[view]
            for name, head in predictions.heads.items():
                np.testing.assert_array_equal(head.logits, kept.heads[name].logits)
                np.testing.assert_array_equal(head.target, kept.heads[name].target)
            for name, items in predictions.rationales.items():
                for item, copy in zip(items, kept.rationales[name], strict=True):
                    assert item.row == copy.row
                    for key in predict.TOKEN_ARRAYS:
                        np.testing.assert_array_equal(getattr(item, key), getattr(copy, key))


def test_masks_equal_the_services_spans() -> None:
    """The evaluation's tokens are the tokens in the service's spans of the same text."""
    text = "I hear you. That must be so hard, and I am sorry! Why do you think so?"
    pieces = tiny_tokenizer().encode(text, add_special_tokens=False)
    chance = np.random.default_rng(3)
    for _ in range(50):
        given = chance.random(len(pieces.offsets)).astype(np.float32)
        read = int(chance.integers(1, len(given) + 1))
        padded = np.where(np.arange(len(given)) < read, given, 0.0)
        numbers = rationale.sentences(pieces.offsets, text)
        item = RationaleOutput(padded, np.zeros(len(given), dtype=int), numbers, row=0)
        spans = rationale.spans(given[:read], pieces.offsets[:read], 0.6, text)
        shown = [int(overlaps(token, spans)) for token in pieces.offsets]
        assert mask(item, 0.6, level=1).tolist() == shown


def test_decisions_equal_the_services() -> None:
    logits = np.random.default_rng(4).normal(size=(40, 3)).astype(np.float32)
    own = Calibration({"h": 1.4}, {"h": [0.2, -0.1, -0.1]}, {"h": [0.0, 0.5, -0.3]})
    spec = HeadSpec(
        name="h",
        dimension=Dimension.EXPRESSED,
        kind=HeadKind.LEVEL,
        roles=[],
        labels=["none", "weak", "strong"],
        temperature=own.temperatures["h"],
        bias=own.biases["h"],
        offsets=own.offsets["h"],
    )
    probabilities = own.probabilities("h", logits.astype(float))
    np.testing.assert_allclose(calibrate(spec, logits), probabilities, atol=1e-6)
    levels = [choose_labels(row, spec.offsets) for row in probabilities.tolist()]
    assert own.labels("h", probabilities).tolist() == levels


def test_mean_and_deviation_over_folds() -> None:
    figure = report.over_folds([{"a": 0.5}, {"a": 0.7}], {"a": 0.65})["a"]
    assert figure["mean"] == pytest.approx(0.6)
    assert figure["sd"] == pytest.approx(0.02**0.5)
    assert figure["pooled"] == 0.65
    assert report.over_folds([{"a": 0.5}], {"a": 0.5})["a"]["sd"] == 0.0


def strategies_fold(number: int, labels: list[int], given: list[int]) -> Fold:
    logits = 5.0 * np.eye(8)[given]
    heads = {"strategy": HeadOutputs(logits, np.eye(8)[labels])}
    return Fold(number, {view: Predictions(heads) for view in folds.VIEWS})


def test_seven_binary_tasks_and_their_mean() -> None:
    """Four turns: a question predicted as others, others correct, two questions correct."""
    fold = strategies_fold(0, [0, 7, 0, 0], [7, 7, 0, 0])
    table = report.CrossValidation([fold], 5).strategies()["views"]["final"]["argmax"]
    assert list(table["tasks"]) == list(report.TASKS)
    question = table["tasks"]["question"]
    assert question["accuracy"]["mean"] == pytest.approx(0.75)
    assert question["precision"]["mean"] == pytest.approx((1 / 2 + 1) / 2)
    assert question["recall"]["mean"] == pytest.approx((1 + 2 / 3) / 2)
    assert question["f1"]["mean"] == pytest.approx((2 / 3 + 4 / 5) / 2)
    # the other six never occur: "no" is correct in four of four, "yes" counts nothing
    assert table["mean"]["accuracy"]["mean"] == pytest.approx((0.75 + 6) / 7)
    assert table["mean"]["f1"]["mean"] == pytest.approx(((2 / 3 + 4 / 5) / 2 + 6 * 0.5) / 7)


def test_the_command_writes_tables_plots_and_the_document(
    corpora: Path, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    app = command.typer.Typer()
    app.command()(command.main)
    out = tmp_path / "evaluation"
    arguments = [f"--folds={trained}", f"--data-dir={corpora}", f"--out={out}"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "2 of 3 folds" in result.output
    assert (out / "reliability.svg").read_text().startswith("<?xml")
    written = document.read_all(out)
    assert set(written) == {
        *("levels", "rationales", "strategies", "annomi", "intents", "ratings", "calibration"),
    }
    rated = sum("empathy" in turn.labels for item in load_corpora(corpora) for turn in item.turns)
    assert 0 < written["ratings"]["views"]["final"]["n"] < rated
    assert written["levels"]["folds"] == [0, 2]
    assert set(written["calibration"]["rows"]) == {h.name for h in HEADS if h.corpus != "outcomes"}
    page = (out / "trust.md").read_text(encoding="utf-8")
    assert "**2 of 3 folds** (number 0, 2)" in page
    assert "![Reliability of every head" in page
    first = out.joinpath("reliability.svg").read_bytes()
    CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert out.joinpath("reliability.svg").read_bytes() == first


def test_without_a_fold_the_error_says_what_to_run(corpora: Path, tmp_path: Path) -> None:
    app = command.typer.Typer()
    app.command()(command.main)
    result = CliRunner().invoke(app, [f"--folds={tmp_path}", f"--data-dir={corpora}"])
    assert result.exit_code == 1
    assert "models.fit.crossvalidate" in result.output


def level_figures(value: float) -> dict[str, object]:
    figure = {"mean": value, "sd": 0.01, "folds": [value, value], "pooled": value}
    keys = ("majority", "accuracy", "macro_f1", "mcc")
    rows = {
        name: {"n": 10, **dict.fromkeys(keys, figure)}
        for name in ("emotional_reactions", "interpretations", "explorations", "mean")
    }
    views = {view: {"shipped": rows, "argmax": rows} for view in folds.VIEWS}
    return {"folds": [0, 1], "of": 2, "views": views}


def page_of(name: str, files: dict[str, Any], folder: Path) -> str:
    part = next(part for part in document.PARTS if part.name == name)
    return document.page(part, files, folder)


def test_the_document_matches_its_files(tmp_path: Path) -> None:
    """A changed figure in the JSON changes the page; missing figures are stated."""
    folder = tmp_path / "evaluation"
    folder.mkdir()
    document.write_json(folder / "levels.json", level_figures(0.8123))
    first = document.write(folder).read_text(encoding="utf-8")
    levels = folder / "expressed.md"
    assert "81.2 ± 1.0" in levels.read_text(encoding="utf-8")
    # Student's t over two folds: 12.71 times 0.01 divided by the square root of two.
    span = "81.2 | 72.2 to 90.2"
    assert (
        f"| EPITOME level ER, accuracy | ≥ 80 | EPITOME 79.4 | {span} | yes, uncertain |" in first
    )
    assert (
        f"| EPITOME level IP, accuracy | ≥ 85 | EPITOME 84.0 | {span} | **no**, uncertain" in first
    )
    assert f"| EPITOME level EX, accuracy | ≥ 93 | EPITOME 92.6 | {span} | **no** |" in first
    assert "| rationale ER, token F1, gold rationales | – |" in first
    behind = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.md"))
    assert behind.count("Not measured yet") == len(document.sections_of_all()) - 1
    linked = re.findall(r"\(evaluation/([\w-]+\.md)\)", first)
    assert set(linked) == {path.name for path in folder.glob("*.md")}
    document.write_json(folder / "levels.json", level_figures(0.5678))
    second = document.write(folder).read_text(encoding="utf-8")
    assert "81.2" not in second
    assert "56.8 ± 1.0" in levels.read_text(encoding="utf-8")


def two_folds(*values: float) -> dict[str, object]:
    return {"mean": sum(values) / len(values), "sd": 0.01, "folds": list(values), "pooled": 0.5}


def test_rationales_have_a_separate_figure_for_marked_responses() -> None:
    """Annotated and half found; annotated and missed; empty and predicted; both empty."""
    gold = [np.array(row) for row in ([1, 1], [1, 0], [0, 0], [0, 0])]
    given = [np.array(row) for row in ([1, 0], [0, 0], [1, 1], [0, 0])]
    found = report.rationale(gold, given)
    assert found["token_f1_gold"] == pytest.approx((2 / 3 + 0) / 2)
    assert found["iou_f1_gold"] == pytest.approx(0.5)  # half of the span overlaps: correct
    assert found["empty_agreed"] == 0.25
    assert found["token_f1"] == pytest.approx((2 / 3 + 0 + 0 + 1) / 4)
    assert found["always_empty"] == 0.5
    assert report.rationale(gold[2:], given[2:])["token_f1_gold"] == 0.0


def test_the_rationale_headline_gives_no_credit_for_two_empty_masks() -> None:
    keys = ("always_empty", "token_f1", "iou_f1", "token_f1_pooled", "token_macro_f1")
    row = {"n": 10, "with_gold": 4, **dict.fromkeys(keys, two_folds(0.7, 0.8))}
    row |= {"token_f1_gold": two_folds(0.41, 0.43), "iou_f1_gold": two_folds(0.36, 0.4)}
    row["empty_agreed"] = two_folds(0.55, 0.57)
    names = ("emotional_reactions", "interpretations", "explorations")
    content = {"folds": [0, 1], "of": 2, "rows": dict.fromkeys(names, row)}
    lines = tables.rationales(content, {}).splitlines()
    assert lines[2].startswith(
        "| emotional_reactions | ours | 10 | 4 | 42.0 ± 1.0 | 38.0 ± 1.0 | 75.0 ± 1.0 | 75.0 ± 1.0"
        " | 56.0 |"
    )
    assert "| always empty | 10 | 4 | 0.0 | 0.0 | 75.0 |" in lines[3]
    assert not any("EPITOME" in line or "53.6" in line for line in lines)
    assert "emotional reactions 53.6" in tables.RATIONALE_NOTES
    assert "not used as targets" in " ".join(tables.RATIONALE_NOTES.split())
    assert not any("53.6" in target.published for target in TARGETS)


def test_the_document_says_when_the_middle_level_is_not_recognised() -> None:
    def page(weak: float | None) -> str:
        row = {} if weak is None else {"f1_weak": two_folds(weak, weak) | {"pooled": weak}}
        content = {"views": {"final": {"shipped": {"interpretations": row}}}}
        counts = {"baselines": {"counts": {"interpretations": [60, 4, 36]}}}
        return tables.weak_interpretations(content, counts)

    assert page(None).startswith("**Weak interpretations (4 of 100 labels) are hardly ever found")
    assert "F1 3.0 for our model" in " ".join(page(0.03).split())
    assert "near 0" in page(0.03)
    assert "near 0" not in page(0.4)


def test_each_level_has_an_f1() -> None:
    found = report.labels_over_folds(
        "interpretations", [np.array([0, 1, 2, 2])], [np.array([0, 2, 2, 2])]
    )
    assert found["f1_none"]["pooled"] == 1.0
    assert found["f1_weak"]["pooled"] == 0.0
    assert found["f1_strong"]["pooled"] == pytest.approx(0.8)
    assert "f1_none" not in report.labels_over_folds(
        "question", [np.zeros(2, int)], [np.ones(2, int)]
    )


def test_every_table_has_its_baselines_if_available() -> None:
    keys = ("majority", "accuracy", "macro_f1", "mcc")
    row = {"n": 10, **dict.fromkeys(keys, two_folds(0.6, 0.8))}
    simple = {"majority": row, "words": row}
    heads = ("behaviour", "talk_type")
    files = {"baselines": {"heads": {"interpretations": simple, **dict.fromkeys(heads, simple)}}}
    levels = tables.levels(level_figures(0.8), files)
    assert "| interpretations | no context | commonest label | 10 | 70.0 |" in levels
    assert "| interpretations | no context | tf-idf + logistic regression | 10 |" in levels
    assert "commonest" not in tables.levels(level_figures(0.8), {})
    view = {"shipped": dict.fromkeys(heads, row), "argmax": dict.fromkeys(heads, row)}
    annomi = tables.annomi({"folds": [0], "of": 1, "views": {"final": view}}, files)
    assert "| talk_type | commonest label, no context | 10 |" in annomi
    assert "| M3TCM, text and speech [1], F1 | 83 | 66 |" in annomi
    assert "| tf-idf + logistic regression, macro-F1 | 70.0 ± 1.0 | 70.0 ± 1.0 |" in annomi
    assert "not verified" in " ".join(tables.ANNOMI_NOTES.split())


def test_micromodels_have_their_own_figures(tmp_path: Path) -> None:
    stored = document.FOLDER / "micromodels.json"
    content = json.loads(stored.read_text(encoding="utf-8"))
    page = page_of("expressed", {"micromodels": content}, tmp_path)
    own = content["micromodels"]["explorations"]["accuracy"]
    assert f"| explorations | own rationales left out | {100 * own['mean']:.1f} ± " in page
    assert "| explorations | published [1] | 95.3 | 61.5 |" in page


@pytest.mark.parametrize("choice", choices.CHOICES, ids=lambda choice: choice.place)
def test_the_code_has_the_documented_values(choice: choices.Choice) -> None:
    module, _, names = choice.place.partition(":")
    value = importlib.import_module(module)
    for name in names.split("."):
        value = getattr(value, name)
    assert choice.value is None or value == choice.value


def test_choices_on_the_evaluated_folds_are_listed(tmp_path: Path) -> None:
    anchor = "recipe.md#hyper-parameters-chosen-on-the-evaluated-folds"
    assert f"({tmp_path.name}/{anchor})" in document.summary_page({}, tmp_path)
    page = page_of("recipe", {}, tmp_path)
    listed = page.split("## Hyper-parameters chosen on the evaluated folds")[1]
    assert "| `models.model.heads:ALONE` | 0.4 | 0.25, 0.4, 0.5 | all five folds |" in listed


def test_no_difference_is_called_better_without_an_interval() -> None:
    """Checks the text of the page; tables from files have no adjectives."""
    words = [document.HEAD, document.TARGET_NOTES, document.SMALL, document.ONE_RUN]
    words += [value for name, value in vars(tables).items() if name.endswith("_NOTES")]
    words += [value for name, value in vars(sections).items() if name.endswith("_NOTES")]
    words += [choices.WORDS]
    superior = re.compile(r"\b(better|best|outperform\w*|superior|beats?|improve\w*|surpass\w*)\b")
    for text in words:
        for sentence in re.split(r"(?<=[.:;])\s", text):
            denied = "no row" in " ".join(sentence.split()).lower()
            assert denied or not superior.search(sentence), sentence


def lever(name: str, f1: float, *, kept: bool = False, share: float = 0.2) -> dict[str, Any]:
    setting = {"epochs": 1, "share": share, "fold": 3}
    about = {"lever": name, "description": f"{name} is changed", "kept": kept}
    return about | {"figures": {"F1": f1}, "setting": setting}


def test_failed_attempts_are_listed_with_the_recipe(tmp_path: Path) -> None:
    rows = [
        lever("focal", 61.25),
        lever("recipe", 70.5, kept=True),
        lever("no_contrast", 65.0, kept=True),
    ]
    page = page_of("recipe", {"ablation": rows}, tmp_path)
    kept, dropped = page.split("## Rejected changes")
    assert "| focal | focal is changed | 61.2 |" in dropped
    assert "no_contrast" not in dropped
    for part in (kept, dropped):
        assert "1 epoch(s) on 20% of what fold 3 trains on" in part
        assert "| recipe | recipe is changed | 70.5 |" in part
    assert "| no_contrast | no_contrast is changed | 65.0 |" in kept
    assert "focal" not in kept


def test_trainings_of_another_size_have_a_separate_table(tmp_path: Path) -> None:
    rows = [
        *(lever(name, 60.0, kept=name == "recipe") for name in ("recipe", "focal")),
        *(lever(name, 80.0, kept=name == "recipe", share=1.0) for name in ("recipe", "ldam")),
    ]
    page = page_of("recipe", {"ablation": rows}, tmp_path)
    kept, dropped = page.split("## Rejected changes")
    small, whole = dropped.split("on 100% of what fold 3 trains on")
    assert "focal" in small
    assert "60.0" in small
    assert "These small trainings" in small
    assert "ldam" in whole
    assert "80.0" in whole
    assert "focal" not in whole
    assert "These small trainings" not in whole
    assert "| recipe |" not in kept, "without a comparison there is no statement"


def test_an_existing_plot_is_included(tmp_path: Path) -> None:
    folder = tmp_path / "evaluation"
    folder.mkdir()
    files = {"calibration": {}}
    assert "reliability.svg" not in page_of("trust", files, folder)
    (folder / "reliability.svg").write_text("<svg/>")
    page = page_of("trust", files, folder)
    assert "![Reliability of every head before and after calibration](rel" in page


def test_files_of_any_shape_become_tables() -> None:
    content = {
        "note": "Two sources.",
        "sessions": 12,
        "heads": {"sympathy": {"rho": 0.31, "n": 40}, "engagement": {"rho": None, "n": 7}},
        "list": [{"turn": 6, "auroc": 0.8}],
    }
    text = document.generic_tables(content)
    assert text.startswith("Two sources.")
    assert "| sessions | 12 |" in text
    assert "| sympathy | 0.310 | 40 |" in text
    assert "| engagement | – | 7 |" in text
    assert "| 6 | 0.800 |" in text
    assert document.generic_tables({"markdown": "As it is."}) == "As it is."


@pytest.mark.parametrize(("value", "reached"), [(0.05, "yes"), (0.051, "**no**")])
def test_a_target_may_be_an_upper_bound(value: float, reached: str) -> None:
    text = document.targets({"calibration": {"largest_ece": value}})
    row = next(line for line in text.split("\n") if "largest ECE" in line)
    assert row.endswith(f"| {reached} |")


def test_every_target_has_a_figure_in_the_real_files(tmp_path: Path) -> None:
    """Every target is found in the output of the command."""
    files = {name: {} for name in document.COMMANDS}
    assert document.lookup(files, Target("x", ("levels", "y"), 1, "")) is None
    assert {target.path[0] for target in TARGETS} <= set(files)


def test_percent_and_spread() -> None:
    assert tables.percent(0.1234) == "12.3"
    assert tables.spread({"mean": 0.5, "sd": 0.1, "folds": [0.5]}) == "50.0"
    assert tables.spread(None) == tables.NONE


def test_an_ablation_row_is_added_once(
    corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multitask, "from_base", lambda **_: (tiny_model(), tiny_tokenizer()))
    app = ablation.typer.Typer()
    app.command()(ablation.main)
    out = tmp_path / "ablation.json"
    arguments = [f"--data-dir={corpora}", f"--out={out}", "--share=0.6"]
    for _ in range(2):
        CliRunner().invoke(
            app, [*arguments, "--only=epitome_only", "--only=no_context"], catch_exceptions=False
        )
    rows = json.loads(out.read_text(encoding="utf-8"))
    assert [row["lever"] for row in rows] == ["epitome_only", "no_context"]
    assert "level macro-F1, mean" in rows[0]["figures"]
    assert "strategies macro-F1" not in rows[0]["figures"]
    assert "strategies macro-F1" in rows[1]["figures"]
    assert rows[0]["setting"] == {"epochs": 1, "fold": 0, "share": 0.6, "seed": 17}


@pytest.mark.parametrize("lever", ablation.LEVERS, ids=lambda lever: lever.name)
def test_a_lever_names_parameters_of_the_recipe_and_changes_one(lever: ablation.Lever) -> None:
    recipe = ablation.Recipe(**{"epochs": 1} | lever.recipe)
    changes = recipe != ablation.Recipe(epochs=1)
    others = lever.corpora or lever.adapted or lever.orders
    same = {"recipe", "epitome_twice"}  # the recipe has adopted the second one since the experiment
    assert changes or others or lever.name in same
    assert set(recipe.repeats) == set(ablation.REPEATS)


def test_a_lever_trains_only_on_its_corpora(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[set[str], ablation.Recipe]] = []

    def fit(_model: object, segments: list[Segment], recipe: ablation.Recipe) -> None:
        seen.append(({segment.corpus for segment in segments}, recipe))

    monkeypatch.setattr(ablation.train, "fit", fit)
    monkeypatch.setattr(
        ablation.multitask, "from_base", lambda adapted: (tiny_model(), tiny_tokenizer())
    )
    lever = ablation.Lever("x", "x", corpora=("annomi",), orders=(18,))
    recipe = ablation.Recipe(seed=17, contrast=False, frozen_layers=0, max_tokens=5)
    ablation.trained(lever, load_corpora(corpora), recipe, corpora)
    assert [(corpus, used.seed) for corpus, used in seen] == [({"annomi"}, 17), ({"annomi"}, 18)]
    assert seen[0][1].repeats == {"annomi": ablation.REPEATS["annomi"]}
