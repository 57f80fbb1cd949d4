"""A bundle of a tiny trained model has the model's outputs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")

from tokenizers import Tokenizer  # noqa: E402

from export import __main__ as command  # noqa: E402
from export import gate, parity, quantize  # noqa: E402
from export.onnx_graphs import Graphs, export_graphs  # noqa: E402
from models import bundle  # noqa: E402  # noqa: E402
from models.card import model_card  # noqa: E402
from models.data import Conversation, load_corpora  # noqa: E402
from models.data.registry import describe  # noqa: E402
from models.evaluate.folds import VIEWS, Fold  # noqa: E402
from models.evaluate.metrics import macro_f1  # noqa: E402
from models.evaluate.predict import HeadOutputs, Predictions, predict  # noqa: E402
from models.fit import train  # noqa: E402  # noqa: E402
from models.fit.calibrate import calibrate  # noqa: E402
from models.labels import HEADS, RATED  # noqa: E402
from models.model import multitask, onnx_model  # noqa: E402  # noqa: E402
from models.model.batches import FINAL, tokenise  # noqa: E402
from models.pages.report import CrossValidation  # noqa: E402
from stream_app.core.measures.heads import PERCEIVED  # noqa: E402
from stream_app.inference.bundles import bundle as reader  # noqa: E402
from tests.models.tiny import tiny_model, tiny_tokenizer, write_corpora  # noqa: E402

INT8 = command.int8_versions([[1, 9, 12, 2], [1, 15, 7, 20, 11, 2], [1, 25, 2]])
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def conversations(tmp_path_factory: pytest.TempPathFactory) -> list[Conversation]:
    return load_corpora(write_corpora(tmp_path_factory.mktemp("corpora"), size=24))


@pytest.fixture(scope="module")
def trained(conversations: list[Conversation], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny model after a few training steps."""
    folder = tmp_path_factory.mktemp("model")
    model, tokenizer = tiny_model(), tiny_tokenizer()
    segments = tokenise(conversations, tokenizer)
    train.fit(model, segments, train.Recipe(epochs=1, pairs_a_step=12, bf16=False))
    about = dict.fromkeys(bundle.TRAINING_KEYS, "made up") | {
        "seed": 17,
        "data": describe(conversations),
    }
    multitask.save(model, tokenizer, folder, about)
    predictions = predict(model.eval(), segments, FINAL, tokenizer)
    calibrate([predictions]).write(folder / "calibration.json")
    return folder


@pytest.fixture(scope="module")
def graphs(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Graphs:
    model, _ = multitask.load(trained)
    return export_graphs(model, tmp_path_factory.mktemp("graphs"))


@pytest.mark.parametrize("form", ["encoder", "packed"])
def test_exported_graphs_agree_with_the_model(trained: Path, graphs: Graphs, form: str) -> None:
    model, _ = multitask.load(trained)
    figures = parity.check_parity(model, getattr(graphs, form), graphs.head)
    assert figures["encoder_max_abs_difference"] <= parity.TOLERANCE
    assert figures["head_max_abs_difference"] <= parity.TOLERANCE


def test_parity_refuses_another_models_graphs(graphs: Graphs) -> None:
    with pytest.raises(parity.ParityError, match="differs"):
        parity.check_parity(tiny_model(seed=9).eval(), graphs.encoder, graphs.head)


def test_parity_refuses_non_finite_values() -> None:
    with pytest.raises(parity.ParityError, match="finite"):
        parity.difference(torch.zeros(2), torch.tensor([0.0, float("nan")]))


def test_graph_inputs_and_outputs_match_the_contract(graphs: Graphs) -> None:
    encoder, packed, head = (onnx_model.session(path) for path in graphs)
    for form in (encoder, packed):
        assert [i.name for i in form.get_inputs()] == ["input_ids", "attention_mask"]
        assert [o.name for o in form.get_outputs()] == ["vectors", "rationale_logits"]
    assert [o.name for o in head.get_outputs()] == [spec.name for spec in HEADS]
    assert {i.name: i.type for i in head.get_inputs()} == {
        "target": "tensor(float)",
        "target_role": "tensor(int64)",
        "context": "tensor(float)",
        "context_role": "tensor(int64)",
        "context_distance": "tensor(int64)",
        "context_mask": "tensor(int64)",
    }


def test_an_fp32_bundle_is_self_describing(
    trained: Path, conversations: list[Conversation], tmp_path: Path
) -> None:
    written = command.build(trained, tmp_path, command.Profile.fp32, conversations, [])
    content = json.loads((tmp_path / "bundle.json").read_text(encoding="utf-8"))
    assert content == json.loads(json.dumps(written))
    assert content["encoder"]["batch_independent"] is True
    assert (content["format"], content["empathy"], content["outcomes"]) == (2, None, {})
    assert "risk" not in content
    assert reader.load(tmp_path).manifest.heads[0].name == content["heads"][0]["name"]
    assert content["files"] == {
        name: bundle.sha256(tmp_path / name)
        for name in ("encoder.onnx", "head.onnx", "tokenizer.json")
    }
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert tokenizer.truncation is None
    assert tokenizer.padding is None
    card = (tmp_path / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "not a diagnosis" in card
    accuracy = 100 * content["metrics"]["test"]["strategy"]["accuracy"]
    assert f"{accuracy:.1f}" in card


def test_the_card_matches_the_evaluation_files(
    trained: Path, conversations: list[Conversation], tmp_path: Path
) -> None:
    content = command.build(trained, tmp_path, command.Profile.fp32, conversations, [])
    bare = model_card(content, {})
    assert bare.count("Not measured yet") == 3  # folds, perceived, probe
    assert "no empathy index yet" in bare
    assert "no outcome models yet" in bare
    model, tokenizer = multitask.load(trained)
    given = predict(model, tokenise(conversations, tokenizer), FINAL, tokenizer)
    files = CrossValidation([Fold(k, dict.fromkeys(VIEWS, given)) for k in range(2)], 2).tables()
    files["perceived"] = {"note": "Learned from what listeners said."}
    row = files["levels"]["views"]["final"]["shipped"]["explorations"]
    row["accuracy"] |= {"mean": 0.7654, "sd": 0.0123}
    card = model_card(content, files)
    assert "76.5 ± 1.2" in card
    assert "Learned from what listeners said." in card
    assert "| explorations | EPITOME | 92.6 | 72.6 |\n" in card
    assert f"| strategy | {content['heads'][3]['temperature']:.2f} |" in card
    assert content["version"] == bundle.VERSION


REFERENCE = {"mean": 0.41, "low": 0.23, "answered_share": 0.62}
CONSTRUCT = {
    "one_answer": 0.752,
    "rated": {"spearman": 0.361, "at_equal_length": None},
    "composed": {
        "counselling": {"spearman": 0.931, "auroc_after_six": 0.967, "auroc_after_three": 0.889}
    },
    "degraded": {"counselling": {"none v strong, from half, every": [0.991, 0.944]}},
    "alerts": {"counselling": {"none": {"fired_per_100": 81.2}, "strong": {"fired_per_100": 4.4}}},
    "annomi_quality": 0.871,
    "surveys": {"esconv": 0.08},
}
OUTCOME_FIGURES = {
    "low_mi_quality": {"sessions": 99, "positive": 17, "value": 0.931, "low": 0.85, "high": 0.98}
}
OUTCOMES = {"low_mi_quality": {"domain": "counselling", "approach": "motivational-interviewing"}}


def test_the_card_has_the_manifests_index_and_outcomes(
    trained: Path, conversations: list[Conversation], tmp_path: Path
) -> None:
    content = command.build(trained, tmp_path, command.Profile.fp32, conversations, [])
    content["training"] |= {"base_model": "bge-small", "teacher": "bge-base"}
    content["empathy"] = {"domains": {"counselling": REFERENCE}, "approaches": {"mi": REFERENCE}}
    content["outcomes"] = OUTCOMES
    unmeasured = model_card(content, {})
    assert "| mi | 0.41 | 0.23 | 0.62 |" in unmeasured
    assert "The benchmark was not run." in unmeasured
    content["metrics"] |= {"construct": CONSTRUCT, "outcomes": {"out_of_fold": OUTCOME_FIGURES}}
    card = model_card(content, {})
    assert "(bge-small, fine-tuned on the labels and on the answers of a fine-tuned bge-base)" in (
        " ".join(card.split())
    )
    assert "| one answer: Spearman of expected and labelled total | 0.75 |" in card
    assert "| the same at equal length | – |" in card
    assert "none v strong, from half, every: AUROC at the end | 0.99 |" in card
    assert "fires in 81 of 100" in card
    assert "`low_mi_quality` (motivational-interviewing)" in card
    assert "| low_mi_quality | 99 | 17 | 0.93 (0.85 to 0.98) |" in card
    for text in (unmeasured, card):
        assert "risk model" not in text
        assert "will rate" not in text


def test_heads_in_the_manifest_match_the_table(
    trained: Path, conversations: list[Conversation], tmp_path: Path
) -> None:
    content = command.build(trained, tmp_path, command.Profile.fp32, conversations, [])
    for entry, spec in zip(content["heads"], HEADS, strict=True):
        assert entry["labels"] == list(spec.labels)
        assert entry["temperature"] > 0
        assert (entry["rationale"] is None) == (spec.kind != "level")
        assert len(entry["bias"]) in {0, len(spec.labels)}
        assert len(entry["offsets"]) == (3 if spec.kind == "level" else 0)
        assert entry["dimension"] == spec.dimension
    assert content["heads"][-1]["roles"] == ["client"]
    perceived = [head["name"] for head in content["heads"] if head["dimension"] == "perceived"]
    assert perceived == [RATED, *PERCEIVED]


def test_updating_head_descriptions_changes_nothing_else(
    trained: Path, conversations: list[Conversation], tmp_path: Path
) -> None:
    before = command.build(trained, tmp_path, command.Profile.fp32, conversations, [])
    earlier = json.loads(json.dumps(before))
    for head in earlier["heads"]:
        del head["words"], head["evidence"]
    bundle.write_manifest(tmp_path, earlier)
    assert reader.load(tmp_path).manifest.heads[0].title == "Emotional reactions"
    bundle.describe_heads(tmp_path)
    after = json.loads((tmp_path / "bundle.json").read_text(encoding="utf-8"))
    assert after == json.loads(json.dumps(before))
    strategy = {head.name: head for head in reader.load(tmp_path).manifest.heads}["strategy"]
    assert strategy.evidence == strategy.labels
    after["heads"][0]["labels"] = ["a", "b", "c"]
    bundle.write_manifest(tmp_path, after)
    with pytest.raises(ValueError, match="emotional_reactions has other labels"):
        bundle.describe_heads(tmp_path)


def test_eight_bit_rows_are_within_half_a_step() -> None:
    table = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)
    table[3] = 0
    rows, scales = quantize.quantize_rows(table)
    assert rows.dtype == np.int8
    assert (np.abs(rows * scales - table) <= scales / 2 + 1e-7).all()


@pytest.mark.parametrize("name", list(INT8))
def test_quantised_encoders_load_and_stay_close(name: str, graphs: Graphs, tmp_path: Path) -> None:
    _, encoder, head = graphs
    INT8[name][0](encoder, tmp_path / "small.onnx")
    ids, mask = torch.tensor([[1, 9, 12, 15, 2]]), torch.ones(1, 5, dtype=torch.long)
    expected, _ = onnx_model.OnnxModel(encoder, head).encode(ids, mask)
    given, _ = onnx_model.OnnxModel(tmp_path / "small.onnx", head).encode(ids, mask)
    similarity = torch.nn.functional.cosine_similarity(expected, given, dim=-1)
    assert similarity.min() > 0.98


@pytest.mark.parametrize("name", [name for name, (_, independent) in INT8.items() if independent])
def test_quantised_turns_do_not_depend_on_their_batch(
    name: str, graphs: Graphs, tmp_path: Path
) -> None:
    _, encoder, head = graphs
    INT8[name][0](encoder, tmp_path / "small.onnx")
    scorer = onnx_model.OnnxModel(tmp_path / "small.onnx", head)
    ids = torch.randint(3, 30, (6, 9), generator=torch.Generator().manual_seed(0))
    together, _ = scorer.encode(ids, torch.ones_like(ids))
    for row in range(6):
        alone, _ = scorer.encode(ids[row : row + 1], torch.ones(1, 9, dtype=torch.long))
        torch.testing.assert_close(alone[0], together[row], atol=1e-5, rtol=0)


def predictions(labels: list[int]) -> Predictions:
    logits = 10.0 * np.eye(2)[labels]
    return Predictions({"h": HeadOutputs(logits, np.eye(2)[[0, 1] * 50])}, {}, {"h": logits})


def test_the_gate_counts_changed_labels() -> None:
    labels = [0, 1] * 50
    one, three = labels.copy(), labels.copy()
    one[0] = 1
    three[0] = three[2] = three[4] = 1
    assert gate.compare(predictions(labels), predictions(labels))["passes"]
    close = gate.compare(predictions(labels), predictions(one))
    assert close["heads"]["h"]["agreement"] == 0.99
    assert not gate.compare(predictions(labels), predictions(three))["passes"]


def test_the_gate_tolerates_rare_labels_and_refuses_a_significant_loss() -> None:
    gold = np.array([0] * 240 + [1] * 8)
    before = gold.copy()
    before[:3] = 1
    one, many = before.copy(), before.copy()
    one[-1] = 0
    many[-7:] = 0
    few = gate.f1_difference(gold, before, one)
    assert few["value"] == pytest.approx(macro_f1(gold, one) - macro_f1(gold, before))
    assert few["value"] < -gate.LARGEST_F1_LOSS < few["high"]
    lost = gate.f1_difference(gold, before, many)
    assert lost["high"] < -gate.LARGEST_F1_LOSS


def test_the_fastest_passing_candidate_is_chosen() -> None:
    def entry(*, passes: bool, speed: float) -> dict[str, object]:
        return {"passes": passes, "speed_ratio": speed}

    figures = {
        "candidates": {
            "fastest": entry(passes=False, speed=3.0),
            "faster": entry(passes=True, speed=1.5),
            "fast": entry(passes=True, speed=1.2),
        }
    }
    assert gate.fastest_passing(figures) == "faster"
    figures["candidates"] = {"fastest": entry(passes=False, speed=3.0)}
    assert gate.fastest_passing(figures) is None


def test_an_int8_bundle_is_built_or_refused_by_the_gate(
    trained: Path,
    conversations: list[Conversation],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gate, "LEAST_AGREEMENT", 0.0)
    monkeypatch.setattr(gate, "LARGEST_F1_LOSS", 1.0)
    content = command.build(trained, tmp_path, command.Profile.int8, conversations, conversations)
    figures = content["metrics"]["quantisation"]
    chosen = figures["candidates"][figures["chosen"]]
    assert content["encoder"]["batch_independent"] is chosen["batch_independent"]
    assert content["encoder"]["packed"] is True
    assert set(figures["candidates"]) == set(INT8)
    monkeypatch.setattr(gate, "LEAST_AGREEMENT", 1.1)
    with pytest.raises(command.GateError, match="fp32"):
        command.build(trained, tmp_path, command.Profile.int8, conversations, conversations)


def test_the_form_for_accelerators_must_pass_the_same_gate(
    trained: Path,
    conversations: list[Conversation],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = command.build(trained, tmp_path, command.Profile.fp32, conversations, [])
    figures = content["metrics"]["accelerator"]
    assert figures["passes"]
    assert min(head["agreement"] for head in figures["heads"].values()) > 0.9
    monkeypatch.setattr(gate, "LEAST_AGREEMENT", 1.1)
    with pytest.raises(command.GateError, match="as on accelerators"):
        command.build(trained, tmp_path, command.Profile.fp32, conversations, [])
