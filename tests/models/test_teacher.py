"""Training with a teacher: its outputs are learned, and it must not have seen the test part."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from models.data import load_corpora  # noqa: E402
from models.data.split import DESCRIPTION, split  # noqa: E402
from models.fit import train  # noqa: E402
from models.fit.teacher import TAUGHT, Teacher, TeacherError, divergence  # noqa: E402
from models.labels import CLIENT, COUNSELLOR, HEADS, OUTCOME_HEADS, HeadSpec  # noqa: E402
from models.model import multitask  # noqa: E402
from models.model.batches import FINAL, Segment, collate, tokenise  # noqa: E402
from tests.models.tiny import tiny_model, tiny_tokenizer, write_corpora  # noqa: E402

RECIPE = train.Recipe(
    epochs=2,
    pairs_a_step=8,
    head_rate=3e-3,
    encoder_rate=1e-3,
    bf16=False,
    contrast=False,
    frozen_layers=0,
    taught=5.0,
)
ROLES = torch.tensor([CLIENT, COUNSELLOR, COUNSELLOR, CLIENT])


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpora(tmp_path_factory.mktemp("corpora"), size=24)


@pytest.fixture
def segments(corpora: Path) -> list[Segment]:
    return tokenise(load_corpora(corpora), tiny_tokenizer())


@pytest.fixture
def teacher() -> Teacher:
    return Teacher(tiny_model(seed=9).eval(), tiny_tokenizer(), "tiny")


def logits() -> dict[str, torch.Tensor]:
    chance = torch.Generator().manual_seed(1)
    return {head.name: torch.randn(4, len(head.labels), generator=chance) for head in HEADS}


def shifted(name: str, rows: torch.Tensor) -> dict[str, torch.Tensor]:
    """The logits with one head's first label more probable in some rows."""
    found = logits()
    found[name][rows, 0] += 2.0
    return found


def test_equal_outputs_have_no_divergence() -> None:
    assert divergence(logits(), logits(), ROLES).item() == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("head", TAUGHT, ids=lambda head: head.name)
def test_different_outputs_diverge_by_the_heads_weight(head: HeadSpec) -> None:
    own = head.role == ROLES
    other = shifted(head.name, own)
    found = divergence(other, logits(), ROLES)
    aim = logits()[head.name][own].softmax(-1)
    gap = aim.log() - other[head.name][own].log_softmax(-1)
    assert found.item() == pytest.approx(head.weight * (aim * gap).sum(-1).mean().item(), rel=1e-4)
    assert found > 0


@pytest.mark.parametrize("head", TAUGHT, ids=lambda head: head.name)
def test_a_heads_outputs_for_the_other_role_do_not_count(
    head: HeadSpec,
) -> None:
    other = shifted(head.name, head.role != ROLES)
    assert divergence(other, logits(), ROLES).item() == pytest.approx(0.0, abs=1e-6)


def test_outcome_heads_are_not_distilled() -> None:
    for name in OUTCOME_HEADS:
        other = shifted(name, ROLES >= 0)
        assert divergence(other, logits(), ROLES).item() == pytest.approx(0.0, abs=1e-6)


def test_a_step_with_one_role_only_has_a_divergence() -> None:
    found = divergence(shifted("talk_type", ROLES >= 0), logits(), torch.full((4,), COUNSELLOR))
    assert found.item() == pytest.approx(0.0, abs=1e-6)


def test_a_teacher_of_another_split_is_refused(tmp_path: Path) -> None:
    about = {"split": "fold 1 of 5", "base_model": "tiny"}
    multitask.save(tiny_model(), tiny_tokenizer(), tmp_path, about)
    with pytest.raises(TeacherError, match=r"trained on 'fold 1 of 5', not on 'fold 0 of 5'"):
        Teacher.read(tmp_path, "fold 0 of 5")
    assert Teacher.read(tmp_path, "fold 1 of 5").name == "tiny"


def test_outputs_need_the_teachers_vectors(segments: list[Segment], teacher: Teacher) -> None:
    with pytest.raises(TeacherError, match="prepare"):
        teacher.answers(collate(segments[:2], FINAL, random.Random(0)))


def test_outputs_equal_the_teachers(segments: list[Segment], teacher: Teacher) -> None:
    teacher.prepare(segments)
    step = collate(segments[:6], FINAL, random.Random(0))
    found = teacher.answers(step)
    with torch.no_grad():
        vectors, _ = teacher.model.encode(step.chunks, step.turns)
        logits = teacher.model.head.in_context(
            *multitask.windows_of(vectors.half().float(), step.targets)
        )
    for head, expected in zip(HEADS, logits, strict=True):
        torch.testing.assert_close(found[head.name], expected, atol=2e-3, rtol=0)


def test_training_reduces_the_divergence_from_the_teacher(
    segments: list[Segment], teacher: Teacher
) -> None:
    teacher.prepare(segments)
    step = collate(segments, FINAL, random.Random(0))

    def gap(model: multitask.MultitaskModel) -> float:
        with torch.no_grad():
            found, _ = model.eval()(step)
            return divergence(found, teacher.answers(step), step.targets.role).item()

    taught, alone = tiny_model(), tiny_model()
    train.fit(taught, segments, RECIPE, teacher=teacher)
    train.fit(alone, segments, RECIPE)
    assert gap(taught) < min(gap(tiny_model()), gap(alone))


def test_a_training_records_its_teacher(
    corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multitask, "from_base", lambda _: (tiny_model(), tiny_tokenizer()))
    conversations = load_corpora(corpora)
    about = {"split": DESCRIPTION, "base_model": "another"}
    multitask.save(tiny_model(seed=9), tiny_tokenizer(), tmp_path / "teacher", about)

    def run(words: str) -> None:
        train.train(
            conversations,
            split(conversations, 17),
            RECIPE,
            tmp_path / "student",
            data_dir=corpora,
            split_words=words,
            max_steps=2,
            teacher=tmp_path / "teacher",
        )

    with pytest.raises(TeacherError):
        run("fold 0 of 5")
    run(DESCRIPTION)
    written = json.loads((tmp_path / "student" / "training.json").read_text(encoding="utf-8"))
    assert written["teacher"] == "another"
    multitask.load(tmp_path / "student")
