"""Encoder-decoders as classifiers: a tiny T5, made here, learns toy tasks through the real code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("sklearn")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402
from typer.testing import CliRunner, Result  # noqa: E402

from research.__main__ import app  # noqa: E402
from research.instruction_seq2seq import measure  # noqa: E402
from research.instruction_seq2seq.instructions import (  # noqa: E402
    PARTS,
    Form,
    InstructionError,
    head_of,
    tail_of,
    token_ids,
)
from research.instruction_seq2seq.measure import Fold, by_task, figures  # noqa: E402
from research.instruction_seq2seq.model import Seq2SeqClassifier  # noqa: E402
from research.instruction_seq2seq.tasks import Task, find, of_variable  # noqa: E402
from research.instruction_seq2seq.training import Classifier, Hyperparameters, Loss, fine_tune  # noqa: E402
from research.second_coder import codebook  # noqa: E402
from research.second_coder.items import Item, Utterance  # noqa: E402
from tests.models.tiny import WORDS  # noqa: E402

SPECIAL = ("<pad>", "</s>", "<unk>")
OWN = ("target", "client", "counsellor", "(", ")", ":", "yes", "no", "not", "here", "sure")
FAST = Hyperparameters(epochs=16, inputs=16, rate=1e-2)
LONGER = replace(FAST, epochs=30)
SAD = Task("mood", "is it sad ?", ("no", "yes"), ("not sad", "sad"), ("no", "yes"))
LONG = Task("mood", "is it sad ?", ("not here", "sure"), ("not sad", "sad"), ("no", "yes"))


def save_t5(folder: Path) -> Path:
    """Save a tiny T5 with random weights and a tokenizer of whole words."""
    words = [*SPECIAL, *dict.fromkeys((*OWN, *WORDS))]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)
    torch.manual_seed(5)
    config = transformers.T5Config(
        vocab_size=len(words),
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        dropout_rate=0.0,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
    )
    transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def tiny_t5(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_t5(tmp_path_factory.mktemp("seq2seq") / "tiny-t5"))


def item(number: int, *turns: tuple[str, str], target: int, **experts: str) -> Item:
    said = tuple(Utterance(role, text) for role, text in turns)
    return Item(f"s{number}", f"{number}/0", said, target, experts)


def items(count: int = 48) -> list[Item]:
    """The mood of "tell me more" is that of the turn before it."""
    found = []
    for number in range(count):
        word, mood = (("sad", "yes"), ("better", "no"))[number % 2]
        turns = (("client", f"i feel so {word}"), ("counsellor", "tell me more"))
        found.append(item(number, *turns, target=1, mood=mood))
    return found


def accuracy(model: str, task: Task, form: Form, chosen: Hyperparameters) -> float:
    classifier = Classifier(
        Seq2SeqClassifier.load(model), [task], "we talk .", form, new_tokens=chosen.new_tokens
    )
    examples = classifier.examples(items())
    torch.manual_seed(0)
    fine_tune(classifier, examples, chosen)
    gold = np.array([example.label for example in examples])
    return float((classifier.read(examples) == gold).mean())


@pytest.mark.parametrize("loss", ["generation", "cross_entropy", "focal", "ldam"])
def test_a_toy_task_is_learned_with_every_loss(loss: Loss, tiny_t5: str) -> None:
    assert accuracy(tiny_t5, SAD, Form(), replace(FAST, loss=loss)) == 1.0


def test_labels_of_several_words_and_new_tokens_are_learned(tiny_t5: str) -> None:
    assert accuracy(tiny_t5, LONG, Form(), LONGER) == 1.0
    assert (
        accuracy(tiny_t5, SAD, Form(), replace(LONGER, new_tokens=True, loss="cross_entropy"))
        == 1.0
    )


def test_what_the_window_leaves_out_is_not_learned(tiny_t5: str) -> None:
    assert accuracy(tiny_t5, SAD, Form(before=0), FAST) == pytest.approx(0.5)


def test_without_training_the_model_is_ranked_as_it_is(tiny_t5: str) -> None:
    zero = Hyperparameters(epochs=0)
    assert accuracy(tiny_t5, SAD, Form(), zero) == accuracy(tiny_t5, SAD, Form(), zero) < 1.0


def test_the_likelihood_is_that_of_all_words_and_no_padding_changes_it(tiny_t5: str) -> None:
    model = Seq2SeqClassifier.load(tiny_t5).eval()
    labels = model.labels_of(LONG.verbalisers)
    assert [len(label) for label in labels] == [3, 2], "with the end token"
    short, long = model.encode("i feel sad"), model.encode("i feel so sad about work and sleep")
    with torch.inference_mode():
        both = model(*model.batch([short, long]), labels)
        alone = model(*model.batch([short]), labels)
        ids, mask = model.batch([short])
        manual = []
        for label in labels:
            logits = model.network(
                input_ids=ids, attention_mask=mask, labels=label[None]
            ).logits.log_softmax(-1)
            manual.append(sum(float(logits[0, n, token]) for n, token in enumerate(label)))
        own = model.gold(*model.batch([short, long]), [labels[1], labels[0]])
    assert torch.allclose(both[0], alone[0], atol=1e-5)
    assert alone[0].tolist() == pytest.approx(manual, abs=1e-5)
    assert own.tolist() == pytest.approx([float(both[0, 1]), float(both[1, 0])], abs=1e-5)


def test_each_part_of_an_instruction_can_be_left_out() -> None:
    text = head_of(SAD, "we talk .", PARTS) + tail_of(SAD, PARTS)
    for part, words in (
        ("domain", "we talk ."),
        ("definition", "not sad"),
        ("intent", "is it sad ?"),
        ("options", "Answer no or yes."),
    ):
        parts = [each for each in PARTS if each != part]
        without = head_of(SAD, "we talk .", parts) + tail_of(SAD, parts)
        assert words in text
        assert words not in without
    assert Form(("domain",)).words == "domain"
    assert (Form(()).words, Form().words) == ("none", "whole")


turns = st.lists(
    st.tuples(
        st.sampled_from(("client", "counsellor")),
        st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join),
    ),
    min_size=1,
    max_size=7,
)


@given(turns, st.integers(0, 6), st.integers(50, 200))
def test_an_input_has_the_whole_instruction_and_the_target_within_its_tokens(
    said: list[tuple[str, str]], place: int, tokens: int
) -> None:
    place %= len(said)
    vocabulary: dict[str, int] = {}

    def encode(text: str) -> list[int]:
        spaced = text.replace("\n", " ").replace(":", " :")
        return [vocabulary.setdefault(word, len(vocabulary)) for word in spaced.split()]

    form = Form(tokens=tokens)
    coded = item(0, *said, target=place)
    try:
        ids = token_ids(SAD, "we talk .", coded, form, encode)
    except InstructionError:
        assert tokens < 60
        return
    words = [list(vocabulary)[token] for token in ids]
    assert len(words) <= tokens
    start = head_of(SAD, "we talk .", PARTS).replace("\n", " ").replace(":", " :").split()
    end = tail_of(SAD, PARTS).replace(":", " :").split()
    assert words[: len(start)] == start
    assert words[-len(end) :] == end
    marked = words.index("(target)")
    own = said[place][1].split()
    shown = said[max(0, place - form.before) : place + 1 + form.after]
    room = tokens - len(start) - len(end) - 2 * len(shown) - 1
    assert words[marked + 2 : marked + 2 + min(len(own), room)] == own[:room]


def test_an_instruction_without_room_is_an_error() -> None:
    with pytest.raises(InstructionError, match="leaves no room"):
        token_ids(SAD, "we", items(1)[0], Form(tokens=10), str.split)  # type: ignore[arg-type]


def test_tasks_come_from_the_codebooks() -> None:
    strategies = find(codebook.read(codebook.find("esconv")), None)
    assert len(strategies) == 7
    asks = next(task for task in strategies if task.name == "strategy=question")
    assert asks.verbalisers == ("no", "yes")
    said = ("counsellor", "why ?")
    assert asks.gold(item(0, said, target=0, strategy="question")) == 1
    assert asks.gold(item(0, said, target=0, strategy="others")) == 0
    assert asks.gold(item(0, said, target=0)) is None
    (every,) = find(codebook.read(codebook.find("esconv")), ["strategy"])
    assert len(every.verbalisers) == 8
    levels = find(codebook.read(codebook.find("epitome")), None)
    assert [task.verbalisers for task in levels] == [("none", "weak", "strong")] * 3
    assert of_variable(codebook.read(codebook.find("epitome")).variables[0]) == levels[0]


def test_a_joint_network_learns_tasks_that_only_the_instruction_tells_apart(tiny_t5: str) -> None:
    """Two tasks with opposite answers to the same conversations."""
    book = codebook.Codebook("t", "s", "we talk .", ())
    same = Task("mood", "sad ?", ("no", "yes"), ("not", "sure"), ("no", "yes"))
    other = Task("calm", "better ?", ("no", "yes"), ("sure", "not"), ("no", "yes"))
    data = []
    for each in items():
        experts = {**each.experts, "calm": {"yes": "no", "no": "yes"}[each.experts["mood"]]}
        data.append(Item(each.session, each.item, each.turns, each.target, experts))
    part = Fold(0, data, data)
    found = by_task([measure.run(tiny_t5, book, [same, other], part, Form(), LONGER, joint=True)])
    assert [each["accuracy"]["mean"] for each in found.values()] == [1.0, 1.0]
    assert found["calm"]["trained"] == [48]


def test_figures_are_means_over_labels() -> None:
    found = figures(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    assert found["precision"] == pytest.approx((1 + 2 / 3) / 2)
    assert found["recall"] == pytest.approx((0.5 + 1) / 2)


def run(*options: str) -> Result:
    return CliRunner().invoke(app, ["run", "instruction_seq2seq", *options])


def test_the_command_writes_rows_and_page(tmp_path: Path, tiny_t5: str, tiny_corpora: Path) -> None:
    options = [f"--data-dir={tiny_corpora}", f"--out={tmp_path}", f"--pages={tmp_path}"]
    options += [f"--checkpoints={tmp_path / 'checkpoints'}", "--threads=1"]
    settings = [f"model={tiny_t5}", "epochs=1", "share=0.5"]
    for row, more in (
        ("esconv", ["task=strategy=question", "after=0"]),
        ("epitome", ["joint=true", "new_tokens=true", "without=definition"]),
        ("epitome", ["task=explorations", "epochs=0"]),
    ):
        changed = [f"--set={each}" for each in (*settings, *more)]
        result = run(*options, f"--row={row}", *changed)
        assert result.exit_code == 0, result.exception
    rows = json.loads((tmp_path / "instruction_seq2seq.json").read_text("utf-8"))["rows"]
    assert [row["instruction"] for row in rows.values()] == [
        "whole",
        "domain, intent, options",
        "whole",
    ]
    assert all("tiny-t5" in key for key in rows)
    text = (tmp_path / "instruction-seq2seq.md").read_text("utf-8")
    assert "| tiny-t5 | Support strategies (ESConv) | whole | 3, 0 | generation | 0 |" in text
    assert "none (zero-shot)" in text
    assert "Not measured here." not in text
    assert not list((tmp_path / "checkpoints").iterdir())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "no model"),
        (("without=intent", "without=options", "joint=true"), "cannot tell tasks"),
        (("model=x", "task=mood"), "no task mood; there are"),
        (("before=4",), "before"),
    ],
)
def test_mistakes_are_named(options: tuple[str, ...], words: str) -> None:
    assert words in str(run(*(f"--set={each}" for each in options)).exception)


@pytest.mark.parametrize(
    ("row", "words"),
    [("service", "no corpus for service"), ("nowhere.yaml", "nowhere.yaml")],
)
def test_a_codebook_needs_a_file_and_a_corpus(row: str, words: str) -> None:
    assert words in str(run(f"--row={row}", "--set=model=x").exception)


def test_another_architecture_is_named(
    tmp_path: Path, tiny_encoder: str, tiny_corpora: Path
) -> None:
    for folder in (tiny_encoder, str(tmp_path)):
        options = (f"--set=model={folder}", f"--data-dir={tiny_corpora}", f"--out={tmp_path}")
        message = str(run(*options, "--row=esconv").exception)
        assert f"error: {folder} cannot be loaded as an encoder-decoder" in message
