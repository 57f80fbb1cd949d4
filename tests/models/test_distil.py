"""A student with fewer layers learns its teacher's outputs."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from models.data.corpora import Conversation, Turn  # noqa: E402
from models.data.dialogues import pool_of  # noqa: E402
from models.data.phrases import normal  # noqa: E402
from models.data.split import DESCRIPTION, key_of  # noqa: E402
from models.distil import calibration, training  # noqa: E402
from models.distil.student import flops_a_token, from_teacher, unit_weights  # noqa: E402
from models.distil.teacher import outputs  # noqa: E402
from models.distil.training import Recipe, Teacher, check, fit  # noqa: E402
from models.distil.turns import (  # noqa: E402
    PIECE,
    Amount,
    Material,
    conversations,
    group,
    material,
    steps,
)
from models.fit.calibrate import Calibration  # noqa: E402
from models.fit.perceived import share_of  # noqa: E402
from models.model import multitask  # noqa: E402
from models.model.batches import FINAL, PROVISIONAL, TRAINING, Window  # noqa: E402
from models.model.multitask import MultitaskModel  # noqa: E402
from tests.models.tiny import (  # noqa: E402
    sentence,
    tiny_model,
    tiny_tokenizer,
    write_contexts,
    write_corpora,
)

SHARE = share_of({"split": DESCRIPTION, "seed": 17})
RECIPE = Recipe(
    epochs=3, encoder_rate=2e-3, head_rate=2e-3, tokens_a_step=300, bf16=False, warm_up=0.1
)


def talks(count: int, seed: int) -> list[Conversation]:
    chance = random.Random(seed)
    return [
        Conversation(
            "made_up", str(n), [Turn(place % 2, sentence(chance)) for place in range(3 + n % 20)]
        )
        for n in range(count)
    ]


@pytest.fixture(scope="module")
def found() -> Material:
    return material(talks(40, 1), talks(12, 2), tiny_tokenizer())


@pytest.fixture(scope="module")
def teacher(found: Material, tmp_path_factory: pytest.TempPathFactory) -> Teacher:
    model = tiny_model().eval()
    return Teacher(model, outputs(model, found.texts, tmp_path_factory.mktemp("t"), bf16=False))


def student_of(found: Material) -> MultitaskModel:
    return from_teacher(tiny_model(), [1], 32, found.texts[:50])


# The student


def test_the_student_is_smaller_and_starts_from_the_teachers_weights(found: Material) -> None:
    large = tiny_model()
    small = student_of(found)
    (layer,) = small.encoder.backbone.encoder.layer
    source = large.encoder.backbone.encoder.layer[1]
    assert torch.equal(layer.attention.self.query.weight, source.attention.self.query.weight)
    assert layer.intermediate.dense.weight.shape == (32, 48)
    for name, value in large.head.state_dict().items():
        assert torch.equal(value, small.head.state_dict()[name])
    assert flops_a_token(small) < 0.6 * flops_a_token(large)
    assert not any(p.requires_grad for p in small.encoder.backbone.embeddings.parameters())


def test_the_units_with_the_largest_contribution_are_kept(found: Material) -> None:
    """Units whose outgoing weights are zero are removed."""
    large = tiny_model()
    gone = torch.arange(0, 64, 2)
    with torch.no_grad():
        large.encoder.backbone.encoder.layer[1].output.dense.weight[:, gone] = 0.0
    assert (unit_weights(large, found.texts[:20])[1][gone] == 0).all()
    small = from_teacher(large, [0, 1], 32, found.texts[:50])
    kept = small.encoder.backbone.encoder.layer[1].intermediate.dense.weight
    source = large.encoder.backbone.encoder.layer[1].intermediate.dense.weight
    assert torch.equal(kept, source[1::2])


def test_a_student_with_all_layers_and_units_equals_the_teacher(found: Material) -> None:
    large = tiny_model().eval()
    same = from_teacher(large, [0, 1], 64, found.texts[:20]).eval()
    ids = torch.tensor([found.texts[0]])
    with torch.no_grad():
        torch.testing.assert_close(
            large.encoder(ids, torch.ones_like(ids)), same.encoder(ids, torch.ones_like(ids))
        )


# The teacher's outputs


def test_the_teachers_outputs_round_trip_through_files(
    found: Material, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.distil.teacher.PART", 100)
    model = tiny_model().eval()
    first = outputs(model, found.texts, tmp_path, bf16=False)
    row = len(found.texts) - 1
    ids = torch.tensor([found.texts[row]])
    with torch.no_grad():
        vectors, logits = model.encoder(ids, torch.ones_like(ids))
    np.testing.assert_allclose(first.vectors[row], vectors[0], atol=2e-3)
    rows = first.rationale[first.starts[row] : first.starts[row + 1]]
    np.testing.assert_allclose(rows, logits[0], atol=2e-3)
    monkeypatch.setattr("models.distil.teacher._encoded", None)
    again = outputs(model, found.texts, tmp_path, bf16=False)
    np.testing.assert_array_equal(first.vectors, again.vectors)
    with pytest.raises(TypeError):  # other weights: no stored output belongs to them
        outputs(tiny_model(3).eval(), found.texts, tmp_path, bf16=False)


# The windows


def test_windows_stay_within_their_piece_and_are_reproducible(found: Material) -> None:
    pieces = found.training[:6]
    drawn = group(pieces, FINAL, "x")
    edges = np.cumsum([0, *(len(piece.texts) for piece in pieces)])
    piece_of = np.repeat(np.arange(len(pieces)), np.diff(edges))
    seen = drawn.mask.bool()
    own = torch.from_numpy(piece_of)[:, None].expand_as(drawn.context)
    assert (torch.from_numpy(piece_of)[drawn.context][seen] == own[seen]).all()
    rows = torch.arange(len(drawn.texts))[:, None]
    assert ((drawn.context - rows)[seen] == drawn.distance[seen]).all()
    before = group(pieces, PROVISIONAL, "x")
    assert not before.mask[before.distance > 0].any()
    assert group(pieces, Window(after=1.0, context=0.0), "x").mask.sum() == 0
    first, second = (group(pieces, TRAINING, 1, 2).mask for _ in range(2))
    assert torch.equal(first, second)


def test_an_epoch_uses_every_piece_once(found: Material) -> None:
    planned = steps(found.training, found.texts, 300, 17, 0)
    assert sorted(map(id, (p for step in planned for p in step))) == sorted(map(id, found.training))
    assert max(len(piece.texts) for piece in found.training) <= PIECE
    assert planned != steps(found.training, found.texts, 300, 17, 1)


# Training


def test_training_moves_the_student_towards_its_teacher(found: Material, teacher: Teacher) -> None:
    student = student_of(found)
    before = check(student, teacher, found, RECIPE)
    fit(student, teacher, found, RECIPE)
    after = check(student, teacher, found, RECIPE)
    for part in ("vectors", "rationale", "heads"):
        assert after[part] < before[part]
    assert after["vectors"] < 0.7 * before["vectors"]


def test_a_resumed_run_equals_an_uninterrupted_one(
    found: Material, teacher: Teacher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = student_of(found)
    fit(whole, teacher, found, RECIPE)

    class Interrupted(Exception):
        pass

    checkpoint = tmp_path / "checkpoint.pt"

    def stop(*_arguments: object) -> None:
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(training._Log, "print", stop)
        with pytest.raises(Interrupted):
            fit(student_of(found), teacher, found, RECIPE, checkpoint=checkpoint, every=3)
    resumed = from_teacher(tiny_model(seed=5), [1], 32, found.texts[:50])
    fit(resumed, teacher, found, RECIPE, checkpoint=checkpoint, resume=True)
    for first, second in zip(whole.parameters(), resumed.parameters(), strict=True):
        torch.testing.assert_close(first, second)


# Calibration


def test_calibration_reverts_changes_of_temperature_and_bias(
    found: Material, teacher: Teacher
) -> None:
    """A student whose logits are twice the teacher's gets a temperature that halves them."""
    student = from_teacher(tiny_model(), [0, 1], 64, found.texts[:20])
    name = "strategy"
    last = student.head.tasks[name][-1]
    with torch.no_grad():
        last.weight *= 2
        last.bias *= 2
    known = Calibration(temperatures={name: 1.5}, abstain_below={name: 0.3})
    result = calibration.fit(student, teacher, found, known)
    assert result.temperatures[name] == pytest.approx(3.0, rel=0.05)
    assert result.biases[name] == pytest.approx([0.0] * 8, abs=0.02)
    assert result.abstain_below == known.abstain_below
    assert known.temperatures == {name: 1.5}


# The corpora


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_contexts(write_corpora(tmp_path_factory.mktemp("corpora"), size=60))


def test_held_out_data_is_never_used_for_training(data_dir: Path) -> None:
    learned, held_out = conversations(data_dir, SHARE, Amount(chats=60, service=60))
    assert {"epitome", "esconv", "empathetic_dialogues", "service", "contrast"} <= {
        item.corpus for item in learned
    }
    for item in learned:
        if item.corpus != "contrast" and item.part is None:
            assert SHARE.trains(key_of(item))
        if item.corpus in ("empathetic_dialogues", "service"):
            assert pool_of(item.split_key) == "train"
    assert held_out
    assert all(item.part == "test" or not SHARE.trains(key_of(item)) for item in held_out)
    tested = {normal(t.text) for item in held_out for t in item.turns if len(t.text) > 40}
    chats = [item for item in learned if item.corpus == "empathetic_dialogues"]
    assert not any(normal(t.text) in tested for item in chats for t in item.turns)


@pytest.mark.filterwarnings("default")  # raised by the exporter
def test_the_commands_build_a_bundle_and_report_its_loss(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Teacher, student, calibration, bundles, outcomes, comparison: the chain of `make nano`."""
    pytest.importorskip("onnxscript")
    from typer.testing import CliRunner  # noqa: PLC0415

    from export import __main__ as export  # noqa: PLC0415
    from models.bundle import TRAINING_KEYS  # noqa: PLC0415
    from models.data import load_corpora  # noqa: PLC0415
    from models.distil.__main__ import app  # noqa: PLC0415
    from models.fit.perceived import left_out_of  # noqa: PLC0415

    large, small = tmp_path / "large", tmp_path / "small"
    about = dict.fromkeys(TRAINING_KEYS, "made up")
    about |= {"seed": 17, "split": DESCRIPTION, "data": []}
    multitask.save(tiny_model(), tiny_tokenizer(), large, about)
    Calibration(temperatures={"strategy": 1.2}).write(large / "calibration.json")

    def run(*arguments: object) -> str:
        result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    data = f"--data-dir={data_dir}"
    run(
        *("train", f"--teacher={large}", f"--out={small}", data, "--layers=1", "--units=32"),
        *("--chats=20", "--service=20", "--max-steps=4", "--no-bf16"),
    )
    run("calibrate", f"--teacher={large}", f"--student={small}", data)
    test = left_out_of(load_corpora(data_dir), json.loads((small / "training.json").read_text()))
    bundles = tmp_path / "large-bundle", tmp_path / "small-bundle"
    for model, out, name in zip((large, small), bundles, ("big", "little"), strict=True):
        export.build(model, out, export.Profile.fp32, test, [], threads=1, name=name)
    manifest = bundles[0] / "bundle.json"
    content = json.loads(manifest.read_text("utf-8"))
    weights = {"talk_share": 1.0}
    model = {"intercept": 0.1, "weights": weights, "min_counsellor_turns": 1}
    content["outcomes"] = {"chat_failed": {**model, "domain": "peer-support"}}
    manifest.write_text(json.dumps(content), "utf-8")
    pair = f"--bundle={bundles[1]}", f"--teacher={bundles[0]}"
    run("outcomes", *pair)
    printed = run("compare", *pair, data, f"--out={tmp_path / 'evaluation'}", "--rounds=1")

    written = json.loads((bundles[1] / "bundle.json").read_text("utf-8"))
    assert written["name"] == "little"
    assert written["outcomes"] == content["outcomes"]
    figures = json.loads((tmp_path / "evaluation" / "nano.json").read_text("utf-8"))
    assert figures["flops_a_token"][1] < 0.6 * figures["flops_a_token"][0]
    assert figures["heads"]["strategy"]["n"] > 0
    assert set(figures["heads"]) == {head["name"] for head in written["heads"]}
    for place in (tmp_path / "evaluation" / "recipe.md", bundles[1] / "MODEL_CARD.md"):
        assert "`little-" in place.read_text("utf-8")
    assert "| strategy |" in printed
