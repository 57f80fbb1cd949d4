"""The window classifier: its windows, what it can learn from them, and its command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("sklearn")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from models.data.corpora import Conversation, Turn, one_hot  # noqa: E402
from models.labels import CLIENT, COUNSELLOR, RATIONALE_ORDER  # noqa: E402
from models.model.encoder import pretrained_tokenizer  # noqa: E402
from research.__main__ import app  # noqa: E402
from research.fine_tuning import Hyperparameters  # noqa: E402
from research.window_classifier.design import MOST, PLANNED, design_of  # noqa: E402
from research.window_classifier.method import (  # noqa: E402
    WindowLevels,
    gold_of,
    part_of,
    task_figures,
)
from research.window_classifier.model import build, target_mean  # noqa: E402
from research.window_classifier.training import fit  # noqa: E402
from research.window_classifier.windows import WINDOW_TOKENS, Windows, collate  # noqa: E402
from stream_app.core.measures.heads import LEVELS  # noqa: E402
from tests.models.tiny import WORDS, tiny_tokenizer  # noqa: E402

FAST = Hyperparameters(
    epochs=12, batch=16, encoder_rate=3e-3, head_rate=1e-2, frozen_layers=0, bf16=False
)


def supporter(text: str, strategy: str = "question") -> Turn:
    return Turn(COUNSELLOR, text, {"strategy": one_hot("strategy", strategy)})


def chats(place: str) -> list[Conversation]:
    """The strategy of "tell me more" follows from one word of the turn at `place`."""
    found = []
    for number in range(48):
        word, strategy = (("sad", "question"), ("work", "information"))[number % 2]
        said = {"preceding": "i feel so", "target": "tell me more", "following": "really ?"}
        said[place] += f" {word}"
        turns = [
            Turn(CLIENT, said["preceding"]),
            supporter(said["target"], strategy),
            Turn(CLIENT, said["following"]),
        ]
        found.append(Conversation("esconv", str(number), turns))
    return found


def accuracy(place: str, key: str, encoder: str) -> float:
    data = chats(place)
    fitted = fit(data, design_of(key), FAST, encoder)
    examples = fitted.windows.examples(data)
    return float((fitted.read(examples) == gold_of(examples)).mean())


@pytest.mark.parametrize(
    ("place", "key", "reached"),
    [
        ("preceding", "strategy-1-0-cross_entropy", 1.0),
        ("preceding", "strategy-0-1-cross_entropy", 0.5),
        ("following", "strategy-1-1-cross_entropy", 1.0),
        ("following", "strategy-1-0-cross_entropy", 0.5),
        ("target", "strategy-0-0-focal", 1.0),
        ("target", "strategy-0-0-ldam", 1.0),
    ],
)
def test_a_label_is_learned_exactly_from_the_turns_in_the_window(
    place: str, key: str, reached: float, tiny_encoder: str
) -> None:
    assert accuracy(place, key, tiny_encoder) == pytest.approx(reached)


turns = st.lists(
    st.tuples(st.sampled_from((CLIENT, COUNSELLOR)), st.lists(st.sampled_from(WORDS), max_size=9)),
    min_size=1,
    max_size=9,
)


@given(turns, st.data())
def test_the_target_is_marked_and_the_window_holds_its_nearest_neighbours(
    said: list[tuple[int, list[str]]], data: st.DataObject
) -> None:
    position = data.draw(st.integers(0, len(said) - 1))
    before, after = data.draw(st.integers(0, MOST)), data.draw(st.integers(0, MOST))
    design = design_of(f"strategy-{before}-{after}-focal")
    tokenizer = tiny_tokenizer()
    windows = Windows(tokenizer, design)
    example = windows.example([Turn(role, " ".join(words)) for role, words in said], position)
    words = [tokenizer.id_to_token(token) for token in example.ids]
    shown = said[max(0, position - before) : position + 1 + after]
    assert words.count("[SEP]") == len(shown)
    assert words[example.start : example.stop] == (said[position][1] or ["[SEP]"])
    assert len(example.ids) <= WINDOW_TOKENS
    spoken = [word for _, each in shown for word in each]
    assert [word for word in words if word in WORDS] == spoken


def test_long_turns_are_cut_at_the_end_that_is_far_from_the_target() -> None:
    tokenizer = tiny_tokenizer()
    long = "sad " * 300
    turns = [
        Turn(CLIENT, f"{long} sorry"),
        supporter(f"why {long}"),
        Turn(CLIENT, f"better {long}"),
    ]
    example = Windows(tokenizer, design_of("strategy-1-1-focal")).example(turns, 1)
    words = [tokenizer.id_to_token(token) for token in example.ids]
    assert len(words) <= WINDOW_TOKENS
    assert example.stop - example.start == WINDOW_TOKENS // 2
    assert words[example.start] == "why"
    assert "sorry" in words[: example.start]
    assert "better" in words[example.stop :]


def test_the_mean_is_over_the_target_alone() -> None:
    states = torch.arange(12.0).reshape(1, 4, 3)
    found = target_mean(states, torch.tensor([[0, 1, 1, 0]]))
    assert torch.equal(found[0], states[0, 1:3].mean(0))


def test_padding_changes_no_output(tiny_encoder: str) -> None:
    windows = Windows(pretrained_tokenizer(tiny_encoder), design_of("strategy-1-1-focal"))
    short, long = chats("preceding")[0], chats("preceding")[1]
    long.turns[0].text += " so so so so so"
    examples = windows.examples([short, long])
    model = build(("strategy",), tiny_encoder).eval()
    with torch.inference_mode():
        (alone,) = model(collate(examples[:1]))
        (together,) = model(collate(examples))
    assert torch.allclose(alone[0], together[0], atol=1e-5)


def test_three_mechanisms_are_learned_by_one_classifier(tiny_encoder: str) -> None:
    data = []
    for number in range(45):
        turn = Turn(COUNSELLOR, ("sorry", "why", "try")[number % 3])
        for offset, head in enumerate(RATIONALE_ORDER):
            turn.labels[head] = one_hot(head, LEVELS[(number + offset) % 3])
        data.append(Conversation("epitome", str(number), [Turn(CLIENT, "i feel sad"), turn]))
    fitted = fit(data, design_of("levels-1-0-cross_entropy"), FAST, tiny_encoder)
    found = WindowLevels(fitted).levels([item.turns for item in data])
    gold = [[(number + offset) % 3 for offset in range(3)] for number in range(45)]
    assert np.array_equal(found, gold)


@pytest.mark.parametrize(
    "key", ["strategy", "strategy-4-0-focal", "moods-1-0-focal", "levels-1-0-mse"]
)
def test_an_unknown_row_is_an_error_that_says_how_rows_are_named(key: str) -> None:
    message = str(CliRunner().invoke(app, ["run", "window_classifier", f"--row={key}"]).exception)
    assert f"no row {key}" in message
    assert "TASK-BEFORE-AFTER-LOSS" in message


def test_every_planned_row_has_a_name_that_is_read_back() -> None:
    assert [design_of(design.key) for design in PLANNED] == list(PLANNED)
    assert design_of("strategy-3-0-focal").context == "3 preceding"
    assert design_of("strategy-0-2-focal").context == "2 following"


def test_a_larger_share_contains_a_smaller_one() -> None:
    data = [Conversation("esconv", str(number), []) for number in range(200)]
    some = part_of(data, 0.2, "train")
    more = part_of(data, 0.5, "train")
    assert 20 < len(some) < 60 < len(more)
    assert {item.split_key for item in some} <= {item.split_key for item in more}
    assert part_of(data, 1.0, "train") == data


def test_seven_tasks_count_each_strategy_against_the_rest() -> None:
    gold, given_ = [np.array([0, 1, 7, 7])], [np.array([0, 7, 7, 1])]
    found = task_figures(gold, given_)
    assert found["accuracy"]["mean"] == pytest.approx((1.0 + 0.5 + 5 * 1.0) / 7)


def test_the_command_writes_rows_and_page(
    tmp_path: Path, tiny_encoder: str, tiny_corpora: Path
) -> None:
    for keys in (["strategy-3-0-ldam"], ["levels-1-0-focal", "strategy-1-1-weighted"]):
        options = ["run", "window_classifier", f"--set=encoder={tiny_encoder}", "--set=epochs=1"]
        options += ["--set=frozen_layers=1", "--set=share=0.8", "--set=bf16=false", "--threads=1"]
        options += [f"--data-dir={tiny_corpora}", f"--out={tmp_path}", f"--pages={tmp_path}"]
        options += [f"--checkpoints={tmp_path / 'checkpoints'}"]
        options += [f"--row={key}" for key in keys]
        result = CliRunner().invoke(app, options, catch_exceptions=False)
        assert result.exit_code == 0
    rows = json.loads((tmp_path / "window_classifier.json").read_text("utf-8"))["rows"]
    assert list(rows) == ["strategy-3-0-ldam", "levels-1-0-focal", "strategy-1-1-weighted"]
    assert set(rows["levels-1-0-focal"]["heads"]) == set(RATIONALE_ORDER)
    assert rows["levels-1-0-focal"]["setting"]["batch"] == 32, "defaults are stored as well"
    assert 0 <= rows["strategy-3-0-ldam"]["tasks"]["f1"]["mean"] <= 1
    text = (tmp_path / "window-classifier.md").read_text("utf-8")
    assert "| 3 preceding, 3 following | cross-entropy | not measured here |" in text
    assert "| 1 preceding, 1 following | weighted | 0 |" in text
    assert "| seeker post | focal | 0 |" in text
    assert not list((tmp_path / "checkpoints").iterdir()), "finished trainings leave none"
