"""The context probe: its cases, its counting, and scorers with known errors."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
import typer
from typer.testing import CliRunner

from models.data.corpora import Conversation, Turn, one_hot
from models.data.phrases import CONGRATULATIONS, PROBE_PHRASES
from models.evaluate.predict import predict
from models.fit.calibrate import Calibration
from models.labels import CLIENT, COUNSELLOR, RATIONALE_ORDER
from models.model import multitask
from models.model.batches import PROVISIONAL, tokenise
from models.probes import __main__ as command
from models.probes import clusters, report
from models.probes.cases import PLACEMENTS, Case, cases
from models.probes.scorers import Dialogue, Levels, ServiceLevels, of_model
from stream_app.contracts.events import Role
from stream_app.contracts.scores import Expressed, Level
from stream_app.core.measures.window import ScoringRequest
from stream_app.core.session.ports import Encoding, HeadScores
from tests.models.test_contexts import PAIRS, write_contexts
from tests.models.tiny import epitome_row, tiny_model, tiny_tokenizer, write_rows

SIZE = 84
"""Four corpora, seven phrases and three placements, equally often."""


@pytest.fixture
def given(tmp_path: Path) -> list[Case]:
    return cases(write_contexts(tmp_path), PAIRS, SIZE, seed=17)


def of(given: list[Case], condition: str, mechanism: str) -> list[Case]:
    return [c for c in given if (c.condition, c.mechanism) == (condition, mechanism)]


class Constant:
    """A scorer that always returns the same level."""

    def __init__(self, level: int) -> None:
        self.level = level

    def levels(self, dialogues: Sequence[Dialogue]) -> Levels:
        return np.full((len(dialogues), 3), self.level)


class Knowing:
    """A scorer of words and context: phrases count after bad news, congratulations after good."""

    def levels(self, dialogues: Sequence[Dialogue]) -> Levels:
        return np.array([[self._fits(dialogue)] * 3 for dialogue in dialogues]).astype(int)

    @staticmethod
    def _fits(dialogue: Dialogue) -> bool:
        before, text = " ".join(turn.text for turn in dialogue[:-1]), dialogue[-1].text
        cheerful = any(phrase in text for phrase in CONGRATULATIONS["probe"])
        sad = any(phrase in text for own in PROBE_PHRASES.values() for phrase in own)
        return cheerful if "joyful" in before else sad or before == "I failed."


# Cases


def test_every_phrase_corpus_and_placement_is_probed_equally_often(given: list[Case]) -> None:
    for head in RATIONALE_ORDER:
        own = of(given, "task", head)
        assert Counter(case.phrase for case in own) == dict.fromkeys(PROBE_PHRASES[head], 12)
        assert Counter(case.placement for case in own) == dict.fromkeys(PLACEMENTS, 28)
        assert set(Counter(case.source for case in own).values()) == {21}
        together = Counter((c.source, c.phrase, c.placement) for c in own)
        assert set(together.values()) == {1}


def test_conditions_say_whether_the_phrase_fits(given: list[Case]) -> None:
    fitting = Counter((c.condition, c.mechanism) for c in given if c.fits)
    misplaced = Counter((c.condition, c.mechanism) for c in given if c.fits is False)
    plain = Counter((c.condition, c.mechanism) for c in given if c.fits is None)
    assert fitting == {
        **{(name, h): SIZE for name in ("bad_news", "bad_later") for h in RATIONALE_ORDER},
        ("good_news", "cheers"): SIZE,
        **{("epitome", head): 1 for head in RATIONALE_ORDER},
    }
    assert misplaced == {
        **{(name, h): SIZE for name in ("task", "task_brief") for h in RATIONALE_ORDER},
        ("good_news", "sympathy"): SIZE,
        ("bad_news", "cheers"): SIZE,
    }
    assert plain == {("task_plain", head): SIZE for head in RATIONALE_ORDER}


def test_the_response_is_last_and_has_the_phrase_at_its_placement(
    given: list[Case],
) -> None:
    for case in given:
        response = case.turns[-1]
        assert response.role == COUNSELLOR
        if case.placement == "alone":
            assert response.text == case.phrase
        elif case.placement:
            ends = (
                response.text.startswith if case.placement == "before" else response.text.endswith
            )
            assert ends(case.phrase)
            assert len(response.text) > len(case.phrase)


def test_misplaced_phrases_after_news_never_join_the_real_reply(given: list[Case]) -> None:
    for case in given:
        if case.condition in {"good_news", "bad_news"} and not case.fits:
            assert "Go on." not in case.turns[-1].text


def test_context_lengths_match_their_condition(given: list[Case]) -> None:
    assert {len(c.turns) for c in given if c.condition == "task_brief"} == {2}
    assert {len(c.turns) for c in given if c.condition == "bad_later"} == {4}


def test_cases_are_reproducible(tmp_path: Path) -> None:
    folder = write_contexts(tmp_path)
    assert cases(folder, [], 20, seed=1) == cases(folder, [], 20, seed=1)
    assert cases(folder, [], 20, seed=1) != cases(folder, [], 20, seed=2)


# Counting


def test_a_scorer_that_always_predicts_none_has_zero_recall(given: list[Case]) -> None:
    found = report.measure(Constant(0), given)
    assert (found["fooled"]["share"], found["recall"]["share"]) == (0.0, 0.0)
    assert {row["value"] for row in found["balanced_accuracy"].values()} == {0.5}


def test_a_scorer_that_always_predicts_strong_is_always_fooled(given: list[Case]) -> None:
    found = report.measure(Constant(2), given)
    assert (found["fooled"]["share"], found["recall"]["share"]) == (1.0, 1.0)
    assert {row["value"] for row in found["balanced_accuracy_phrase_alone"].values()} == {0.5}


def test_a_scorer_that_uses_the_context_is_never_fooled(given: list[Case]) -> None:
    given = [case for case in given if case.condition != "task"]
    found = report.measure(Knowing(), given)
    assert found["fooled"]["called"] == 0
    assert found["recall"]["share"] == 1.0
    assert found["balanced_accuracy"]["cheers"]["value"] == 1.0


def test_each_mechanism_is_read_from_its_own_column() -> None:
    turns = (Turn(CLIENT, "I failed."), Turn(COUNSELLOR, "Why?"))
    for mechanism, expected in (
        ("emotional_reactions", True),
        ("interpretations", False),
        ("explorations", True),
        ("sympathy", True),
        ("cheers", True),
    ):
        case = Case("task", mechanism, fits=False, turns=turns, source="x")
        assert report.called(case, np.array([1, 0, 2])) is expected


def hand_made() -> tuple[list[Case], list[bool]]:
    """Ten misplaced phrases, three of which fool; four fitting ones, one of which is missed."""
    turns = (Turn(CLIENT, "Hi."), Turn(COUNSELLOR, "Why?"))
    given, empathic = [], []
    for number in range(10):
        phrase = PROBE_PHRASES["explorations"][0 if number < 4 else 3]
        source = "uss_sgd" if number < 5 else "uss_mwoz"
        given.append(Case("task", "explorations", False, turns, source, phrase, "alone"))
        empathic.append(number in {0, 1, 9})
    for number in range(4):
        given.append(Case("bad_news", "explorations", True, turns, "ed", "Why?", "after"))
        empathic.append(number > 0)
    return given, empathic


def test_counts_shares_and_wilson_intervals_equal_manual_calculations() -> None:
    found = report.figures(*hand_made())
    task = found["conditions"]["task/explorations"]
    assert (task["called"], task["n"], task["share"], task["fits"]) == (3, 10, 0.3, False)
    # (p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n) with p = 0.3, n = 10, z = 1.96
    assert task["interval"] == pytest.approx([0.10779, 0.60322], abs=1e-4)
    assert {name: row["share"] for name, row in task["by_source"].items()} == {
        "uss_sgd": 0.4,
        "uss_mwoz": 0.2,
    }
    assert {name: row["share"] for name, row in task["by_phrases"].items()} == pytest.approx(
        {"lee": 2 / 4, "added": 1 / 6}
    )
    assert task["by_phrase"]["Why?"]["n"] == 4
    assert found["fooled_lees_phrases"]["n"] == 4
    assert found["recall"]["share"] == 0.75


def test_balanced_accuracy_is_the_mean_of_both_shares_inside_its_interval() -> None:
    found = report.figures(*hand_made())["balanced_accuracy"]["explorations"]
    assert found["value"] == pytest.approx((0.7 + 0.75) / 2)
    # Half the root of summed squares of the distances to the Wilson limits:
    # 3 of 10: 0.30322 above, 0.19221 below; 3 of 4: 0.44936 below, 0.20441 above.
    low, high = found["interval"]
    assert low == pytest.approx(0.725 - (0.30322**2 + 0.44936**2) ** 0.5 / 2, abs=1e-3)
    assert high == pytest.approx(0.725 + (0.19221**2 + 0.20441**2) ** 0.5 / 2, abs=1e-3)


def test_a_stored_entry_keeps_the_others_until_the_probe_changes(tmp_path: Path) -> None:
    path, probe = tmp_path / "probes.json", {"size": 1, "seed": 1}
    first, second = report.figures(*hand_made()), report.figures(*hand_made())
    report.store(path, "a", first, probe)
    report.store(path, "b", second, probe)
    stored = json.loads(path.read_text())
    assert list(stored["scorers"]) == ["a", "b"]
    assert stored["published"]["persona_chat"]["emotional_reactions"] == 997
    assert list(report.store(path, "c", first, {"size": 2, "seed": 1})["scorers"]) == ["c"]


def test_the_table_has_a_column_per_scorer_and_the_published_shares(tmp_path: Path) -> None:
    path, probe = tmp_path / "probes.json", {"size": 1, "seed": 1}
    report.store(path, "a", report.figures(*hand_made()), probe)
    table = report.markdown(report.store(path, "b", report.figures(*hand_made()), probe))
    row = next(line for line in table.splitlines() if line.startswith("| EX, Lee et al.'s"))
    assert row.split(" | ")[2:] == ["50.0 (50.0–50.0)", "50.0 (50.0–50.0)", "96.9 / 99.4 |"]
    # Two phrases: 2 of 4 and 1 of 6. Resamples of one phrase give the ends of the interval.
    row = next(line for line in table.splitlines() if line.startswith("| EX, phrase in"))
    assert row.split(" | ")[2:] == ["30.0 (16.7–50.0)", "30.0 (16.7–50.0)", " |"]
    phrases = report.phrases_markdown(report.figures(*hand_made())).splitlines()
    assert phrases[2].startswith("| EX: Why? | Lee et al. | 50.0")


def test_intervals_resample_phrases_and_not_cases() -> None:
    """A thousand cases of one phrase are no more evidence about other phrases than ten."""
    counts = {"one": np.array([0.0, 1000.0]), "other": np.array([1000.0, 1000.0])}
    found = clusters.share({"explorations": counts})
    assert (found["share"], found["phrases"], found["interval"]) == (0.5, 2, [0.0, 1.0])
    few = {phrase: own / 100 for phrase, own in counts.items()}
    assert clusters.share({"explorations": few})["interval"] == [0.0, 1.0]
    assert clusters.share({})["share"] is None


def test_both_shares_of_a_balanced_accuracy_use_the_same_phrases() -> None:
    """A phrase always predicted as empathic is wrong where it does not fit: always 0.5."""
    wrong = {"one": np.array([0.0, 10.0]), "other": np.array([10.0, 10.0])}
    found = clusters.balanced(wrong, wrong)
    assert (found["value"], found["interval"]) == (0.5, [0.5, 0.5])
    assert clusters.balanced(wrong, {"third": np.ones(2)})["value"] is None


def test_the_unseen_corpus_is_counted_by_phrase(given: list[Case]) -> None:
    found = report.measure(Constant(2), given)
    unseen = found["conditions"]["task/explorations"]["by_phrase_unseen"]
    own = [c for c in of(given, "task", "explorations") if c.source == "uss_ccpe"]
    assert {phrase: row["n"] for phrase, row in unseen.items()} == Counter(c.phrase for c in own)
    assert "by_phrase_unseen" not in found["conditions"]["good_news/sympathy"]
    assert "by_phrase_unseen" not in found["conditions"]["task_plain/explorations"]
    table = report.markdown({"scorers": {"always": found}})
    lines = [line for line in table.splitlines() if line.startswith("|")]
    rows = [line for line in lines if "reserved for probes" in line]
    assert [row.split(" | ")[2] for row in rows] == ["100.0 (100.0–100.0)"] * 2


# Scorers


class Echo:
    """A service scorer whose level is the number of neighbours."""

    bundle_id, window, risk = "echo", (2, 2), None

    def __init__(self) -> None:
        self.encoded: list[str] = []
        self.requests: list[ScoringRequest] = []

    def encode(self, texts: list[str], roles: list[Role] | None = None) -> list[Encoding]:
        self.encoded += texts
        return [Encoding(text.encode(), {}, truncated=False) for text in texts]

    def score(self, requests: list[ScoringRequest]) -> list[HeadScores]:
        self.requests += requests
        return [HeadScores(self._expressed(t), {}, {}, 1.0, []) for t in requests]

    @staticmethod
    def _expressed(request: ScoringRequest) -> Expressed:
        level = Level(len(request.context), [])
        return Expressed(
            emotional_reactions=level, interpretations=Level(0, []), explorations=level
        )


def test_the_service_scorer_uses_the_preceding_window_and_encodes_texts_once() -> None:
    scorer = Echo()
    long = [Turn(CLIENT, "a"), Turn(COUNSELLOR, "b"), Turn(CLIENT, "c"), Turn(COUNSELLOR, "d")]
    levels = ServiceLevels(scorer).levels([long, long[2:]])
    assert levels.tolist() == [[2, 0, 2], [1, 0, 1]]
    assert sorted(scorer.encoded) == ["a", "b", "c", "d"]
    seen = [(n.turn.vectors, n.turn.role, n.distance) for n in scorer.requests[0].context]
    assert seen == [(b"b", Role.COUNSELLOR, -2), (b"c", Role.CLIENT, -1)]
    assert scorer.requests[0].turn.vectors == b"d"


def save_tiny(folder: Path) -> Path:
    multitask.save(tiny_model(), tiny_tokenizer(), folder, {})
    return folder


def test_a_model_folder_scores_each_dialogue_separately(tmp_path: Path) -> None:
    scorer = of_model(save_tiny(tmp_path))
    texts = ["i feel sad .", "why ?", "you must sleep more .", "sorry !"]
    dialogues = [[Turn(CLIENT, "hard work"), Turn(COUNSELLOR, text)] for text in texts] * 3
    together = scorer.levels(dialogues)
    assert together.shape == (12, 3)
    alone = [scorer.levels([dialogue])[0].tolist() for dialogue in dialogues]
    assert together.tolist() == alone


def test_a_model_folder_is_scored_as_in_evaluation(tmp_path: Path) -> None:
    """The probe's windows give the same logits as evaluation."""
    folder = save_tiny(tmp_path)
    texts = ["i feel sad .", "why ?", "work is hard", "you must sleep more .", "sorry !", "so ?"]
    dialogues = []
    for size in range(2, 7):  # more and fewer preceding turns than the window size
        turns = [Turn((size - n) % 2, text) for n, text in enumerate(texts[:size])]
        turns[-1] = Turn(COUNSELLOR, texts[size - 1])
        turns[-1].labels = {head: one_hot(head, "none") for head in RATIONALE_ORDER}
        dialogues.append(turns)
    model, tokenizer = multitask.load(folder)
    segments = tokenise([Conversation("x", "", d) for d in dialogues], tokenizer)
    expected = predict(model, segments, PROVISIONAL, tokenizer).heads
    scorer = of_model(folder)
    seen: dict[str, torch.Tensor] = {}
    score = scorer.model.score
    scorer.model.score = lambda *given: seen.update(score(*given)) or seen
    levels = scorer.levels(dialogues)
    for column, head in enumerate(RATIONALE_ORDER):
        np.testing.assert_allclose(seen[head].numpy(), expected[head].logits, atol=1e-5)
        assert levels[:, column].tolist() == expected[head].predicted.tolist()


def test_calibration_offsets_determine_the_level(tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "model")
    path = tmp_path / "calibration.json"
    Calibration(offsets={"explorations": [0.0, 0.0, 99.0]}).write(path)
    dialogue = [Turn(CLIENT, "work"), Turn(COUNSELLOR, "why ?")]
    assert of_model(folder, path).levels([dialogue])[0, 2] == 2


def test_the_command_probes_a_model_folder(tmp_path: Path) -> None:
    import random  # noqa: PLC0415

    folder = write_contexts(tmp_path)
    rows = [epitome_row(number, random.Random(0)) for number in range(40)]
    write_rows(folder / "epitome_reddit.jsonl.gz", rows)
    out = tmp_path / "out" / "probes.json"
    app = typer.Typer()
    app.command()(command.main)
    arguments = ["--model", str(save_tiny(tmp_path / "m")), "--data-dir", str(folder)]
    arguments += ["--out", str(out), "--size", "7", "--name", "tiny", "--fold", "1"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    stored = json.loads(out.read_text())
    assert stored["probe"] == {"size": 7, "seed": 17}
    assert stored["scorers"]["tiny"]["heldout"] == "fold 1 of 5"
    assert stored["scorers"]["tiny"]["fooled"]["n"] == 5 * 7
    assert "| balanced accuracy, ER |" in result.stdout


@pytest.mark.parametrize("arguments", [[], ["--bundle", "a", "--model", "b"]])
def test_the_command_accepts_one_scorer(arguments: list[str]) -> None:
    app = typer.Typer()
    app.command()(command.main)
    assert CliRunner().invoke(app, arguments).exit_code == 2
