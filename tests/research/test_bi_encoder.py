"""EPITOME's bi-encoder: its attention, its ablations and its command, with a tiny encoder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from typer.testing import CliRunner  # noqa: E402

from models.data.corpora import Conversation, Turn, one_hot  # noqa: E402
from models.labels import CLIENT, COUNSELLOR, RATIONALE_ORDER  # noqa: E402
from models.model.encoder import pretrained_tokenizer  # noqa: E402
from research.__main__ import app  # noqa: E402
from research.bi_encoder.batches import collate, pairs_of  # noqa: E402
from research.bi_encoder.design import DESIGNS, Design  # noqa: E402
from research.bi_encoder.model import attend, build  # noqa: E402
from research.bi_encoder.training import fit, loss_of  # noqa: E402
from research.fine_tuning import Hyperparameters, freeze, parameters_of  # noqa: E402
from stream_app.core.measures.heads import LEVELS  # noqa: E402

FAST = Hyperparameters(epochs=15, batch=16, encoder_rate=3e-3, head_rate=1e-2, frozen_layers=0)


def pair(seeker: str, response: str, level: int, phrase: str = "") -> Conversation:
    turn = Turn(COUNSELLOR, response)
    start = response.index(phrase)
    for head in RATIONALE_ORDER:
        turn.labels[head] = one_hot(head, LEVELS[level])
        turn.rationales[head] = [(start, start + len(phrase))] if phrase else []
    return Conversation("epitome", seeker, [Turn(CLIENT, seeker), turn])


def in_context() -> list[Conversation]:
    """The same response is strong after "sad" and none after "work"."""
    found = []
    for number in range(48):
        word, level = (("sad", 2), ("work", 0))[number % 2]
        found.append(pair(f"i feel {word} so so", "i am sorry", level, "sorry" * (level > 0)))
    return found


def accuracy(context: str, encoder: str) -> float:
    data = in_context()
    fitted = fit(data, Design("", context), FAST, encoder)  # type: ignore[arg-type]
    gold = [2 * (number % 2 == 0) for number in range(len(data))]
    return float((fitted.read(data).levels[:, 0] == gold).mean())


@pytest.mark.parametrize("context", ["attention", "joined", "window"])
def test_a_label_that_depends_on_the_seeker_is_learned_with_the_seeker(
    context: str, tiny_encoder: str
) -> None:
    assert accuracy(context, tiny_encoder) > 0.95


def test_without_the_seeker_post_it_cannot_be_learned(tiny_encoder: str) -> None:
    assert accuracy("none", tiny_encoder) == pytest.approx(0.5)


def test_rationales_are_learned_at_their_tokens(tiny_encoder: str) -> None:
    data = [pair("i feel sad", "i am sorry . why ?", 1, "sorry"), pair("i", "try work", 0)] * 12
    for context in ("attention", "window"):
        fitted = fit(data, Design("", context), replace(FAST, epochs=40), tiny_encoder)  # type: ignore[arg-type]
        first, second = fitted.read(data[:2]).masks
        assert first.shape == (6, 3)
        assert first[:, 0].tolist() == [0, 0, 1, 0, 0, 0]
        assert second.sum() == 0


def test_attention_is_a_mean_of_the_seeker_states_without_padding() -> None:
    states, heard = torch.zeros(1, 2, 4), torch.arange(12.0).reshape(1, 3, 4)
    found = attend(states, heard, torch.tensor([[1, 1, 0]]))
    assert torch.allclose(found[0, 0], heard[0, :2].mean(0))


def test_lambda_weighs_the_rationales_and_zero_leaves_them_out(tiny_encoder: str) -> None:
    tokenizer = pretrained_tokenizer(tiny_encoder)
    batch = collate(pairs_of(in_context()[:4], tokenizer), window=False)
    torch.manual_seed(0)
    levels = torch.randn(4, 3, 3)
    rationales = torch.randn(4, batch.ids.shape[1], 3)
    losses = [float(loss_of(levels, rationales, batch, slice(0, 3), w)) for w in (0, 0.5, 1)]
    assert losses[2] - losses[1] == pytest.approx(losses[1] - losses[0])
    assert losses[1] > losses[0]


def test_a_window_has_the_tokens_of_both_and_the_rationale_of_the_response(
    tiny_encoder: str,
) -> None:
    pairs = pairs_of(
        [pair("i feel sad", "i am sorry", 1, "sorry")], pretrained_tokenizer(tiny_encoder)
    )
    alone, window = collate(pairs, window=False), collate(pairs, window=True)
    assert window.ids.shape[1] == alone.ids.shape[1] + len(pairs[0].seeker) - 1
    assert window.types[0].tolist() == [0] * 5 + [1] * 4
    assert window.rationales[0, :, 0].nonzero().flatten().tolist() == [7]
    assert window.rationale_mask[0, :, 0].nonzero().flatten().tolist() == [5, 6, 7]
    assert alone.rationale_mask[0, :, 0].nonzero().flatten().tolist() == [1, 2, 3]


def test_independent_models_are_three_times_as_large(tiny_encoder: str) -> None:
    data = in_context()[:4]
    once = Hyperparameters(epochs=1, frozen_layers=0)
    one = fit(data, DESIGNS["bi_encoder"], once, tiny_encoder)
    three = fit(data, DESIGNS["independent"], once, tiny_encoder)
    assert len(three.models) == 3
    assert [model.mechanisms for model in three.models] == [1, 1, 1]
    assert three.read(data).levels.shape == one.read(data).levels.shape == (4, 3)


def test_frozen_parts_do_not_train(tiny_encoder: str) -> None:
    model = build(DESIGNS["bi_encoder"], 3, tiny_encoder)
    everything, before = parameters_of(model)
    freeze(model.response, 1)
    total, after = parameters_of(model)
    assert total == everything == before > after > 0


def test_the_command_adds_rows_to_the_result_file(
    tmp_path: Path, tiny_encoder: str, tiny_corpora: Path
) -> None:
    for rows in (["no_seeker"], ["bi_encoder", "no_rationales"]):
        options = ["run", "bi_encoder", f"--set=encoder={tiny_encoder}", "--set=epochs=1"]
        options += ["--set=frozen_layers=1", "--threads=1"]
        options += [f"--data-dir={tiny_corpora}", f"--out={tmp_path}", f"--pages={tmp_path}"]
        options += [f"--row={row}" for row in rows]
        result = CliRunner().invoke(app, options, catch_exceptions=False)
        assert result.exit_code == 0
    rows = json.loads((tmp_path / "bi_encoder.json").read_text("utf-8"))["rows"]
    assert list(rows) == ["no_seeker", "bi_encoder", "no_rationales"]
    page = (tmp_path / "baselines.md").read_text("utf-8")
    assert "| three independent bi-encoders, as published | not measured here |" in page
    assert "| -seeker post: response alone (1 epoch) | 0 |" in page
    head = rows["bi_encoder"]["heads"]["explorations"]
    assert {"accuracy", "macro_f1", "mcc", "token_f1", "iou_f1"} <= set(head)
    assert "token_f1" not in rows["no_rationales"]["heads"]["explorations"]
    assert rows["bi_encoder"]["parameters"] > rows["no_seeker"]["parameters"]
    assert np.isfinite(rows["bi_encoder"]["minutes"])


def test_an_unknown_row_is_named_with_those_that_exist() -> None:
    result = CliRunner().invoke(app, ["run", "bi_encoder", "--row=attention"])
    assert "no row attention" in str(result.exception)
