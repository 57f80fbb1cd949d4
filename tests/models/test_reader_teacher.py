"""Learning from a teacher's logits, and the answers that only a teacher judges."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from models.labels import CLIENT, COUNSELLOR
from models.reader import mined
from models.reader.examples import Example
from models.reader.model import OUTPUTS, GradedResponse, Reader
from models.reader.train import Read, collate, loss_of, taught

WIDTH = sum(OUTPUTS.values())
ANSWER = list(OUTPUTS).index("answer")


def read(corpus: str = "mined_chats", role: int = COUNSELLOR) -> Read:
    return Read(Example(corpus, "k", role, "x"), [1, 2], 1)


def stored(folder: Path, logits: np.ndarray, name: str = "judged.npz") -> Path:
    np.savez(folder / name, logits=logits.astype(np.float16))
    return folder / name


def test_a_read_gets_the_mean_logits_of_the_heads_of_its_role(tmp_path: Path) -> None:
    reads = [read(), read("crisis_cssrs", CLIENT)]
    one = stored(tmp_path, np.full((2, WIDTH), 1.0), "one.npz")
    two = stored(tmp_path, np.full((2, WIDTH), 2.0), "two.npz")
    counsellor, client = (each.soft for each in taught(reads, [one, two]))
    assert counsellor == {"answer": 1.5, "fit": 1.5, "lapse": 1.5}
    assert set(client) == {"emotional_opportunity", "interpretation_opportunity", "crisis"}


def test_what_no_teacher_judged_teaches_nothing(tmp_path: Path) -> None:
    logits = np.zeros((3, WIDTH))
    logits[1] = np.nan
    judged, left_out, no_talk = taught([read(), read(), read("snli")], [stored(tmp_path, logits)])
    assert judged.soft
    assert not left_out.soft
    assert not no_talk.soft


def test_logits_of_other_reads_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="judged 3 turns, and there are 1"):
        taught([read()], [stored(tmp_path, np.zeros((3, WIDTH)))])


@pytest.mark.parametrize(("logit", "sign"), [(4.0, -1), (-4.0, 1)])
def test_a_student_is_drawn_to_its_teacher(logit: float, sign: int) -> None:
    one = read()
    one.soft = {"answer": logit, "lapse": -logit}
    logits = torch.zeros(1, WIDTH, requires_grad=True)
    loss_of(logits, collate([one], 0), GradedResponse()).backward()
    assert logits.grad is not None
    assert np.sign(float(logits.grad[0, ANSWER])) == sign
    lapse = sum(list(OUTPUTS.values())[: list(OUTPUTS).index("lapse")])
    assert np.sign(float(logits.grad[0, lapse])) == -sign


class Positions(nn.Module):
    """An encoder whose state of a token is its place."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> object:
        place = torch.arange(input_ids.shape[1], dtype=torch.float)
        states = place.view(1, -1, 1).expand(len(input_ids), -1, 2).clone()

        class Output:
            last_hidden_state = states

        return Output()


def test_a_causal_reader_sees_the_last_token_that_is_no_padding() -> None:
    seen: list[Tensor] = []
    reader = Reader(Positions(), 2, causal=True).eval()
    reader.norm.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]])
    reader(torch.ones(2, 4, dtype=torch.long), mask, torch.tensor([1, 2]))
    assert seen[0][:, 0].tolist() == [2.0, 3.0]
    assert seen[0][:, 2].tolist() == [1.5, 2.5], "the mean of the turn"


def test_an_edited_answer_differs_in_one_word() -> None:
    chance = random.Random(1)  # a choice of words, no secret
    before = "Your mother lost it, and you can't sleep."
    after = mined.edited(before, chance)
    assert after is not None
    words = [(a, b) for a, b in zip(before.split(), after.split(), strict=False) if a != b]
    assert len(words) == 1
    assert mined.edited("Tell me.", chance) is None


def test_a_voices_clients_get_answers_of_its_other_clients_only() -> None:
    examples = [
        Example("quartets", voice, COUNSELLOR, f"answer {voice} {n}", ((CLIENT, f"lost {n}"),))
        for voice in ("glasgow", "durban")
        for n in range(6)
    ]
    own = {(each.key, each.turns): each.text for each in examples}
    found = list(mined.voices(examples))
    assert found
    for each in found:
        assert each.key in each.text
        assert each.text != own[each.key, each.turns]
        assert not each.binary
        assert each.grade is None
