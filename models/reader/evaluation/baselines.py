"""Baselines of the reader's evaluation: counting words, and length.

Run as `python -m models.reader.evaluation.baselines`.

Every figure of the reader has three columns with it that saw no more than words: tf-idf of the
answer and of the client's words before it, tf-idf of the answer alone, and the answer's length. The
first two are fitted to the same judgements, in the folds that hold out the reader's. A linear model
of words can't compare what the client said with what the answer says: where it comes close to the
reader, the figure does not show that the reader compares them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline

from models.data.corpora import REPOSITORY, resolve_data_dir
from models.evaluate.text_baseline import STRENGTH
from models.labels import CLIENT
from models.reader import corpora, written
from models.reader.evaluation import evaluated
from models.reader.examples import CONTEXT_TURNS, Example
from models.reader.tasks import Floats, Places, Task, tasks_of, words_in
from models.reader.train import FOLDS, fold_number, voiced

OUT = REPOSITORY / "docs" / "evaluation" / "reader" / "baselines.json"
RUNS = {"all folds": tuple(range(FOLDS)), "two folds": (0, 1)}
"""Folds whose examples the stored figures of the reader are of."""
SEED = 17
TOGETHER = "pairs: manners_"
"""Tasks that are fitted together."""
SUICIDAL = (
    "Passive suicidal ideation",
    "Active suicidal ideation & suicidal planning",
    "Direct self-injury",
    "Other suicidal language",
)
"""Constructs of the lexicon that a text with crisis language would name."""

Scores = dict[str, dict[tuple[int, ...], Any]]
"""Each baseline's score of each unit: a number, or one a code."""


def text_of(examples: Sequence[Example], unit: Sequence[int]) -> str:
    """The text that a baseline reads: the turn, or all answers of a chat."""
    return " ".join(examples[place].text for place in unit)


def before(examples: Sequence[Example], unit: Sequence[int]) -> str:
    """The client's words in the turns that the reader sees before each answer, each turn once."""
    turns = (turn for place in unit for turn in examples[place].turns[-CONTEXT_TURNS:])
    return " ".join(dict.fromkeys(text for role, text in turns if role == CLIENT))


def word_scores(texts: NDArray[np.object_], task: Task, fold: Places) -> Floats:
    """A score of each unit by tf-idf of the columns of `texts` [units, columns], cross-fitted."""
    width = len(np.unique(task.truth)) if task.kind == "code" else 1
    score = np.zeros((len(texts), width))
    for number in np.unique(fold):
        rest = fold != number
        learned = _learner(texts.shape[1], task).fit(texts[rest], task.truth[rest])
        decide = learned.predict if task.kind == "scale" else learned.decision_function
        classes = learned.classes_.astype(int) if task.kind == "code" else [0]
        score[np.ix_(~rest, classes)] = decide(texts[~rest]).reshape(-1, len(classes))
    return score if task.kind == "code" else score[:, 0]


def _learner(columns: int, task: Task) -> Pipeline:
    counts = [
        (str(place), TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, 2)), place)
        for place in range(columns)
    ]
    learner: Any = Ridge(alpha=1.0)
    if task.kind != "scale":
        learner = LogisticRegression(C=STRENGTH, class_weight="balanced", max_iter=2000)
    return make_pipeline(ColumnTransformer(counts), learner)


def lexicon_pattern(lexicon: Mapping[str, Sequence[str]]) -> re.Pattern[str]:
    """A pattern that finds each phrase of the suicidal constructs as whole words."""
    phrases = {phrase.lower() for name in SUICIDAL for phrase in lexicon[name]}
    longest = sorted(phrases, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)")


def scores_of(
    task: Task, examples: Sequence[Example], fold: Places, phrases: re.Pattern[str]
) -> Scores:
    """The baselines' score of each unit; without what a task has no use for."""
    answers = [text_of(examples, unit) for unit in task.units]
    clients = [before(examples, unit) for unit in task.units]
    found = {"words": word_scores(np.array([[a] for a in answers], object), task, fold)}
    if any(clients):
        both = np.array(list(zip(answers, clients, strict=True)), object)
        found["client and answer"] = word_scores(both, task, fold)
    if task.kind != "code" and "at equal length" not in task.name:
        found["length"] = np.array([words_in(examples, unit) for unit in task.units], np.float64)
    if task.head == "crisis":
        named = [len(phrases.findall(answer.lower())) for answer in answers]
        found["lexicon"] = np.array(named, np.float64)
    return {name: dict(zip(task.units, score, strict=True)) for name, score in found.items()}


def pooled(tasks: Sequence[Task]) -> list[Task]:
    """The tasks with those of `TOGETHER` as one, for fitting.

    Each of them alone has all better answers in one manner, which is no sign of a better answer.
    """
    one = [task for task in tasks if task.name.startswith(TOGETHER)]
    if not one:
        return list(tasks)
    units = tuple(unit for task in one for unit in task.units)
    truth = np.concatenate([task.truth for task in one])
    rest = [task for task in tasks if not task.name.startswith(TOGETHER)]
    return [*rest, replace(one[0], name=TOGETHER, units=units, truth=truth)]


def baselines(
    examples: Sequence[Example], phrases: re.Pattern[str]
) -> dict[str, dict[str, dict[str, float]]]:
    """The baselines' values of every figure, for all folds and for those of each stored run."""
    voices = sorted({each.key for each in examples if voiced(each.corpus)})
    folds = np.array([fold_number(each, SEED, voices) for each in examples])
    scored: dict[str, Scores] = {}
    for task in pooled(tasks_of(examples, np.ones(len(examples), bool))):
        fold = folds[[unit[0] for unit in task.units]]
        scored[task.name] = scores_of(task, examples, fold, phrases)
    return {
        run: {
            task.name: _values(
                task, scored[TOGETHER if task.name.startswith(TOGETHER) else task.name]
            )
            for task in tasks_of(examples, np.isin(folds, chosen))
        }
        for run, chosen in RUNS.items()
    }


def _values(task: Task, scores: Scores) -> dict[str, float]:
    everything = np.arange(len(task.units))
    found: dict[str, float] = {"rows": task.rows}
    for name, by_unit in scores.items():
        score = np.array([by_unit[unit] for unit in task.units])
        found[name] = round(task.statistic(everything, score), 4)
    return found


def main(
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    contrast: Annotated[Path, typer.Option(help="Folder of the voices.")] = written.CONTRAST,
    out: Annotated[Path, typer.Option(help="JSON file to write.")] = OUT,
) -> None:
    """Write what words and length reach on every figure of the reader."""
    folder = resolve_data_dir(data_dir)
    examples = [*corpora.load(folder), *written.load(folder, contrast)]
    found = baselines(examples, lexicon_pattern(evaluated.lexicon(folder)))
    out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for name, values in found["all folds"].items():
        print(f"{name:40}", *(f"{key} {value:g}" for key, value in values.items()))


if __name__ == "__main__":
    typer.run(main)
