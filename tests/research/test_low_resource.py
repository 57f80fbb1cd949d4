"""Contrast between corpora, NLI baselines and few labels, on data whose answer is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("sklearn")

from typer.testing import CliRunner  # noqa: E402

from models.data import load_corpora  # noqa: E402
from models.data.corpora import Conversation, Turn, one_hot  # noqa: E402
from models.evaluate.metrics import mcc  # noqa: E402
from models.labels import CLIENT, COUNSELLOR  # noqa: E402
from research.__main__ import app  # noqa: E402
from research.low_resource import exchanges as data  # noqa: E402
from research.low_resource.contrast import fit, trained  # noqa: E402
from research.low_resource.exchanges import Exchange, Target, is_question  # noqa: E402
from research.low_resource.measure import by_question, contrast_row, few_shot  # noqa: E402
from research.low_resource.nli import FrozenInference, PretrainedInference, zero_shot  # noqa: E402
from tests.models.tiny import WORDS, tiny_tokenizer, write_contexts, write_rows  # noqa: E402
from tests.research.conftest import WIDTH  # noqa: E402


def embed(texts: Sequence[str]) -> np.ndarray:
    """Unit vectors of word counts."""
    counts = np.array(
        [[text.lower().split().count(word) for word in WORDS] for text in texts], float
    )
    return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)


KIND = [Exchange("i feel sad", "i am sorry"), Exchange("it is hard", "sorry . tell me more")] * 40
COOL = [Exchange("what work", "try that work"), Exchange("how could i", "maybe talk work")] * 40


def test_a_contrast_transfers_to_a_target_with_the_same_difference() -> None:
    model = trained(KIND, COOL, embed, 1)  # type: ignore[arg-type]
    unseen = [Exchange("", "we am sorry"), Exchange("", "you try work")]
    assert model.empathic(unseen).tolist() == [True, False]


def test_two_utterances_use_what_the_client_says() -> None:
    """The same answer, and only the client's turn differs."""
    positive = [Exchange("i feel sad", "tell me more")] * 40
    negative = [Exchange("about work", "tell me more")] * 40
    gold = np.repeat([True, False], 40)
    for utterances, reached in ((2, 1.0), (1, 0.0)):
        model = trained(positive, negative, embed, utterances)  # type: ignore[arg-type]
        assert mcc(gold, model.empathic([*positive, *negative])) == pytest.approx(reached)


def test_an_answer_is_empathic_by_sentence_if_one_sentence_is() -> None:
    model = trained(KIND, COOL, embed, 1)  # type: ignore[arg-type]
    mixed = [Exchange("", "try that work maybe talk work. sorry. work maybe talk work")]
    assert model.empathic_by_sentence(mixed).tolist() == [True]
    assert model.empathic_by_sentence([Exchange("", "try work. talk work.")]).tolist() == [False]


def target(count: int = 200) -> Target:
    """Empathic answers say sorry; the last fifth is fold 0. Other words are noise."""
    chance = np.random.default_rng(4)
    exchanges, empathic = [], []
    for _ in range(count):
        shown = bool(chance.random() < 0.5)
        noise = " ".join(chance.choice([w for w in WORDS if w.isalpha() and w != "sorry"], 6))
        exchanges.append(Exchange("", f"sorry {noise}" if shown else noise))
        empathic.append(shown)
    fold = np.where(np.arange(count) < 4 * count // 5, 1, 0)
    return Target("toy", "toy", exchanges, np.array(empathic), np.zeros(count, bool), fold)


def test_the_start_helps_with_few_labels_and_the_curve_rises_without_it() -> None:
    model = trained(KIND, COOL, embed, 1)  # type: ignore[arg-type]
    rows = {row["turns"]: row for row in few_shot(target(), model, embed)}  # type: ignore[arg-type]
    assert max(rows) == 128, "budgets above the number of labelled turns are left out"
    assert rows[8]["started"]["mean"] > rows[8]["alone"]["mean"] + 0.1
    assert rows[128]["alone"]["mean"] > rows[8]["alone"]["mean"]
    assert rows[128]["alone"]["mean"] > 0.9


def test_without_labels_the_start_stays_as_it_is() -> None:
    start = np.array([1.0, -2.0])
    assert fit(np.zeros((2, 2)), np.array([True, False]), start).tolist() == [1.0, -2.0]


def test_a_control_learns_its_corpora_but_not_the_target() -> None:
    """Both sides are empathic alike and differ in a word that says nothing about the target."""
    pools = {
        "chats": [Exchange("", f"sorry we {word}") for word in WORDS[:26]] * 3,
        "esconv": [Exchange("", f"sorry you {word}") for word in WORDS[:26]] * 3,
        "service": [Exchange("", f"try work {word}") for word in WORDS[:26] if word != "sorry"] * 3,
    }
    toy = target()
    encode = embed
    contrast, _ = contrast_row(("chats", "service"), pools, [toy], encode, 1, 40)  # type: ignore[arg-type]
    control, _ = contrast_row(("chats", "esconv"), pools, [toy], encode, 1, 40)  # type: ignore[arg-type]
    assert contrast["own"]["mean"] > 0.9
    assert control["own"]["mean"] > 0.9
    assert contrast["targets"]["toy"]["all"]["mean"] > 0.6
    assert abs(control["targets"]["toy"]["all"]["mean"]) < 0.3


def test_questions_are_left_out_of_the_second_figure() -> None:
    toy = Target(
        "toy",
        "toy",
        [Exchange("", "")] * 4,
        np.array([True, True, False, False]),
        np.array([False, True, False, True]),
        np.zeros(4, int),
    )
    given = np.array([True, False, False, True])
    assert by_question(toy, given) == {"all": 0.0, "no_questions": 1.0}


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("how was that for you?", True),
        ("you were sad about it. right?", False),
        ("?", True),
        ("no punctuation at all", False),
        ("", False),
    ],
)
def test_a_question_is_one_if_most_of_its_words_are(text: str, asked: bool) -> None:
    assert is_question(text) is asked


def test_the_stand_in_learns_entailment() -> None:
    rows = []
    for word in ("sad", "hard", "work", "sleep", "better", "more"):
        for other in ("you", "we", "me"):
            rows.append((f"{other} feel {word}", f"{other} {word}", "entailment"))
            rows.append((f"{other} feel {word}", "why how what", "contradiction"))
    model = FrozenInference(rows, embed)  # type: ignore[arg-type]
    assert model.entails(["i feel sad", "i feel sad"], ["i sad", "why how"]).tolist() == [
        True,
        False,
    ]


class Recorded:
    """Answers by whether the hypothesis is in the premise, and keeps the calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def entails(self, premises: Sequence[str], hypotheses: Sequence[str]) -> np.ndarray:
        self.calls += zip(premises, hypotheses, strict=True)
        return np.array([h in p for p, h in zip(premises, hypotheses, strict=True)])


def test_the_baselines_ask_as_the_paper_does() -> None:
    recorded = Recorded()
    found = zero_shot(recorded, [Exchange("i am so sad", "so sad")])
    assert recorded.calls == [
        ("so sad", "This text is empathetic."),
        (
            "Client: i am so sad | Therapist: so sad",
            "The Therapist is empathetic towards the Client.",
        ),
        ("i am so sad", "so sad"),
        ("so sad", "i am so sad"),
    ]
    assert [bool(given[0]) for given in found.values()] == [False, False, True, False]


def save_classifier(folder: Path, labels: dict[int, str]) -> str:
    config = transformers.BertConfig(
        vocab_size=64,
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=40,
        id2label=labels,
        label2id={label: number for number, label in labels.items()},
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("cls", "sep", "pad", "unk")}
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=tiny_tokenizer(), **special)
    wrapped.save_pretrained(folder)
    return str(folder)


def test_a_pretrained_model_is_loaded_from_a_folder(tmp_path: Path) -> None:
    name = save_classifier(tmp_path / "nli", {0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"})
    model = PretrainedInference(name)
    with torch.no_grad():
        model.model.classifier.bias.copy_(torch.tensor([0.0, 0.0, 100.0]))
    assert model.entails(["i feel sad"] * 20, ["sad " * 600] * 20).all()


def test_a_model_without_entailment_is_refused_with_its_labels(tmp_path: Path) -> None:
    name = save_classifier(tmp_path / "other", {0: "sad", 1: "joyful"})
    with pytest.raises(ValueError, match=r"joyful.*sad"):
        PretrainedInference(name)


def test_reflections_are_the_proxy_in_annomi() -> None:
    turns = [Turn(CLIENT, "it is hard")]
    for kind in ("complex", "none"):
        labels = {"reflection": one_hot("reflection", kind)}
        turns.append(Turn(COUNSELLOR, f"{kind} so", labels))
    found = data.annomi([Conversation("annomi", "a", turns)])
    assert found.empathic.tolist() == [True, False]
    assert [exchange.before for exchange in found.exchanges] == ["it is hard", "it is hard"]


def test_the_command_writes_results_and_page(
    tmp_path: Path, tiny_encoder: str, tiny_corpora: Path
) -> None:
    write_contexts(tiny_corpora)
    rows = [
        {"premise": f"i feel {word}", "hypothesis": "i feel", "label": label}
        for word in WORDS[:20]
        for label in ("entailment", "neutral", "contradiction")
    ]
    for file in ("snli_dev", "snli_test"):
        write_rows(tiny_corpora / f"{file}.jsonl.gz", rows)
    options = ["run", "low_resource", f"--data-dir={tiny_corpora}", f"--out={tmp_path}"]
    options += [f"--pages={tmp_path}", f"--set=encoder={tiny_encoder}", "--set=bf16=false"]
    options += [f"--set=cache={tmp_path / 'vectors.npz'}", "--set=size=20"]
    result = CliRunner().invoke(app, options, catch_exceptions=False)
    assert result.exit_code == 0
    content = json.loads((tmp_path / "low_resource.json").read_text("utf-8"))
    assert [row["control"] for row in content["contrasts"]] == [
        False,
        False,
        False,
        True,
        True,
        True,
    ] * 2
    text = (tmp_path / "low-resource.md").read_text("utf-8")
    assert "| chats v service (1) | contrast |" in text
    assert "stand-in on SNLI" in text
    assert {row["turns"] for row in content["few_shot"]["curves"]["epitome"]} > {0, 8}

    content["few_shot"] = None
    content["contrasts"][0]["positive"] = "kept"
    (tmp_path / "low_resource.json").write_text(json.dumps(content), "utf-8")
    again = CliRunner().invoke(app, [*options, "--row=few_shot"], catch_exceptions=False)
    assert again.exit_code == 0
    content = json.loads((tmp_path / "low_resource.json").read_text("utf-8"))
    assert content["few_shot"]["start"] == ["chats", "service"]
    assert content["contrasts"][0]["positive"] == "kept"


def test_there_is_no_page_until_every_row_was_run(
    tmp_path: Path, tiny_encoder: str, tiny_corpora: Path
) -> None:
    write_contexts(tiny_corpora)
    options = ["run", "low_resource", "--row=few_shot", f"--data-dir={tiny_corpora}"]
    options += [f"--out={tmp_path}", f"--pages={tmp_path}", f"--set=encoder={tiny_encoder}"]
    options += [f"--set=cache={tmp_path / 'v.npz'}", "--set=bf16=false", "--set=size=20"]
    assert CliRunner().invoke(app, options, catch_exceptions=False).exit_code == 0
    assert (tmp_path / "low_resource.json").is_file()
    assert not (tmp_path / "low-resource.md").is_file()


def test_epitomes_other_folds_are_labelled_turns_and_fold_0_is_the_test(
    tiny_corpora: Path,
) -> None:
    conversations = load_corpora(tiny_corpora)
    test, everything = (data.epitome(conversations, all_folds=each) for each in (False, True))
    chosen = everything.fold == 0
    assert [e for e, kept in zip(everything.exchanges, chosen, strict=True) if kept] == (
        test.exchanges
    )
    assert 0 < chosen.sum() < len(chosen)


def test_an_unknown_corpus_is_refused_with_those_that_exist() -> None:
    options = ["run", "low_resource", "--set=positive=chats", "--set=negative=reddit"]
    result = CliRunner().invoke(app, options)
    assert "chats, esconv, epitome, service" in str(result.exception)
