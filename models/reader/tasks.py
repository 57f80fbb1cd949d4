"""Tasks of the reader's evaluation: each figure is a task, for any score of the examples.

The reader and the baselines that never saw it are measured by the same tasks, so that a figure and
its baselines are of the same turns, pairs, chats or sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score

from models.evaluate.resampling import auroc, partial_spearman, spearman
from models.reader.examples import MITI_CODES, Example, pairs_of

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Bools = NDArray[np.bool_]
Kind = Literal["scale", "yes", "pairs", "code"]
Statistic = Callable[[Places, Floats], float]

FEWEST = 10
"""Judgements below which there is no figure."""
RATINGS = {
    "rated answers, all": ("rated_human", "rated_model"),
    "rated answers, people's": ("rated_human",),
    "turn empathy (WASSA)": ("wassa_chats",),
    "rated exchanges": ("empathetic_exchanges",),
}
JUDGED = {
    "opportunity, emotional": ("emotional_opportunity", ("eaf_people",)),
    "opportunity, interpretation": ("interpretation_opportunity", ("eaf_people",)),
    "crisis: RallyPoint": ("crisis", ("crisis_rallypoint", "crisis_rallypoint_negated")),
    "crisis: C-SSRS": ("crisis", ("crisis_cssrs",)),
    "crisis: inputs": ("crisis", ("crisis_inputs",)),
}


@dataclass(frozen=True)
class Task:
    """A figure: which examples are judged, what is true of them, and how a score is measured.

    A unit is what has one judgement: a turn, or all answers of a chat or session, whose scores are
    averaged. Of a task of pairs, the units are better and worse answer in turn. `groups` [units] is
    what is resampled (None: the figure has no interval). `sign` is -1 where a high value of the
    reader's `head` says no.
    """

    name: str
    kind: Kind
    head: str
    units: tuple[tuple[int, ...], ...]
    truth: Floats
    statistic: Statistic
    groups: Places | None
    sign: float = 1.0

    @property
    def rows(self) -> int:
        """Number of judgements."""
        return len(self.units) // 2 if self.kind == "pairs" else len(self.units)

    def score_of(self, heads: dict[str, Floats]) -> Floats:
        """The reader's score of each unit from the outputs of all examples by head."""
        mean = np.array([heads[self.head][list(unit)].mean(0) for unit in self.units])
        return self.sign * (mean if self.kind == "code" else mean[:, 0])


def preferred(rows: Places, score: Floats) -> float:
    """Share of the pairs whose better answer scores higher; equal scores count half.

    >>> preferred(np.arange(4), np.array([2.0, 1.0, 3.0, 3.0]))
    0.75
    """
    better, worse = score[rows].reshape(-1, 2).T
    return float(((better > worse) + 0.5 * (better == worse)).mean())


def _ranked(truth: Floats) -> Statistic:
    return lambda rows, score: spearman(score[rows], truth[rows])


def _told(truth: Floats) -> Statistic:
    return lambda rows, score: auroc(truth[rows] > 0.5, score[rows])


def _f1(truth: Floats) -> Statistic:
    labels = range(len(MITI_CODES))

    def statistic(rows: Places, score: Floats) -> float:
        said = score[rows].argmax(1)
        return float(f1_score(truth[rows], said, average="macro", labels=labels))

    return statistic


def words_in(examples: Sequence[Example], unit: Sequence[int]) -> int:
    """Number of words of a unit."""
    return sum(len(examples[place].text.split()) for place in unit)


class _Known:
    """The examples that count, as tasks."""

    def __init__(self, examples: Sequence[Example], known: Bools) -> None:
        self.examples, self.known = examples, known
        self.found: list[Task] = []

    def rows(self, *corpora: str) -> list[int]:
        return [i for i, e in enumerate(self.examples) if self.known[i] and e.corpus in corpora]

    def levels(self, places: Sequence[int]) -> Floats:
        grades = [self.examples[i].grade for i in places]
        return np.array([grade[1] for grade in grades if grade is not None], np.float64)

    def yes(self, places: Sequence[int], head: str) -> Floats:
        return np.array([self.examples[i].binary.get(head, 0.0) for i in places], np.float64)

    def keys(self, places: Sequence[int]) -> Places:
        keys = [self.examples[i].key for i in places]
        names = {name: number for number, name in enumerate(sorted(set(keys)))}
        return np.array([names[key] for key in keys])

    def ranked(self, name: str, head: str, places: Sequence[int], truth: Floats) -> None:
        self._turns(name, "scale", head, places, truth, 1.0)

    def told(
        self, name: str, head: str, places: Sequence[int], truth: Floats, sign: float = 1.0
    ) -> None:
        if len(set(truth)) == 2:
            self._turns(name, "yes", head, places, truth, sign)

    def _turns(
        self,
        name: str,
        kind: Kind,
        head: str,
        places: Sequence[int],
        truth: Floats,
        sign: float,
    ) -> None:
        if len(places) < FEWEST:
            return
        statistic = _ranked(truth) if kind == "scale" else _told(truth)
        units = tuple((i,) for i in places)
        task = Task(name, kind, head, units, truth, statistic, self.keys(places), sign)
        self.found.append(task)


def tasks_of(examples: Sequence[Example], known: Bools) -> list[Task]:
    """Every figure for which there are enough of the `known` examples."""
    held = _Known(examples, known)
    _feedback(held)
    for name, corpora in RATINGS.items():
        places = held.rows(*corpora)
        held.ranked(name, "answer", places, held.levels(places))
    _chats(held)
    for name, (head, corpora) in JUDGED.items():
        places = held.rows(*corpora)
        agreed = [i for i in places if examples[i].binary.get(head, 0.0) in (0.0, 1.0)]
        held.told(name, head, agreed, held.yes(agreed, head))
    _near_misses(held)
    _codes(held)
    _pairs(held)
    _sessions(held)
    return held.found


def _feedback(held: _Known) -> None:
    places = held.rows("esconv_feedback")
    lapsed = [i for i in places if held.examples[i].binary]
    truth = held.yes(lapsed, "lapse")
    held.told("experts: lapse of empathy (answer)", "answer", lapsed, truth, -1.0)
    held.told("experts: lapse of empathy (lapse)", "lapse", lapsed, truth)
    held.told("experts: any need of work", "answer", places, 1.0 - held.levels(places), -1.0)


def _chats(held: _Known) -> None:
    """IEval by chat: all its answers against its rating, also at equal length."""
    by_chat: dict[str, list[int]] = {}
    for place in held.rows("ieval"):
        by_chat.setdefault(held.examples[place].kind, []).append(place)
    if not by_chat:
        return
    units = tuple(map(tuple, by_chat.values()))
    first = [unit[0] for unit in units]
    truth, groups = held.levels(first), held.keys(first)
    length = np.array([words_in(held.examples, unit) for unit in units])
    ranks = np.argsort(np.argsort(length)).astype(float)[:, None]
    name = "iEval: understood"
    held.found.append(Task(name, "scale", "answer", units, truth, _ranked(truth), groups))

    def at_equal_length(rows: Places, score: Floats) -> float:
        return partial_spearman(score[rows], truth[rows], ranks[rows])

    name = f"{name}, at equal length"
    held.found.append(Task(name, "scale", "answer", units, truth, at_equal_length, groups))


def _near_misses(held: _Known) -> None:
    said = [i for i in held.rows("crisis_rallypoint") if held.examples[i].binary["crisis"] > 0.5]
    negated = held.rows("crisis_rallypoint_negated")
    both = said + [i for i in negated if held.examples[i].binary["crisis"] < 0.5]
    held.told("crisis: negated near misses", "crisis", both, held.yes(both, "crisis"))


def _codes(held: _Known) -> None:
    places = held.rows("miti_sentences")
    if not places:
        return
    codes = [held.examples[i].code for i in places]
    truth = np.array([code for code in codes if code is not None], np.float64)
    units = tuple((i,) for i in places)
    held.found.append(Task("MITI codes, macro-F1", "code", "code", units, truth, _f1(truth), None))
    graded = [i for i in places if held.examples[i].grade is not None]
    held.told("MITI: non-adherent", "answer", graded, 1.0 - held.levels(graded), -1.0)


def _pairs(held: _Known) -> None:
    by_corpus: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for pair in pairs_of(held.examples):
        better = held.examples[pair[0]]
        if held.known[list(pair)].all():
            by_corpus.setdefault((better.corpus, better.kind), []).append(pair)
    for (corpus, kind), pairs in sorted(by_corpus.items()):
        units = tuple((place,) for pair in pairs for place in pair)
        truth = np.tile([1.0, 0.0], len(pairs))
        groups = np.repeat(np.arange(len(pairs)) // 2, 2)
        name = "next answers" if kind == "fit" else f"pairs: {corpus}"
        head = "fit" if kind == "fit" else "answer"
        held.found.append(Task(name, "pairs", head, units, truth, preferred, groups))


def _sessions(held: _Known) -> None:
    by_session: dict[tuple[str, str], list[int]] = {}
    for place in held.rows("plain_sessions_good", "plain_sessions_bad"):
        example = held.examples[place]
        by_session.setdefault((example.corpus, example.kind), []).append(place)
    if len(by_session) < FEWEST:
        return
    truth = np.array([corpus.endswith("good") for corpus, _ in by_session], np.float64)
    units = tuple(map(tuple, by_session.values()))
    groups = np.arange(len(units))
    held.found.append(Task("plain sessions", "yes", "answer", units, truth, _told(truth), groups))
