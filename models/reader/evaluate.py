"""Figures of the reader on what was held out of its training."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import f1_score

from models.data.corpora import resolve_data_dir
from models.data.split import fold_of
from models.reader import corpora, written
from models.reader.examples import MITI_CODES, Example, pairs_of
from models.reader.model import OUTPUTS
from models.reader.train import FOLDS, voiced
from models.resampling import auroc, interval, partial_spearman, spearman

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Figure = dict[str, Any]
FEWEST = 10
"""Examples below which there is no figure."""
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


def gathered(examples: Sequence[Example], folders: Sequence[Path]) -> dict[str, Floats]:
    """Logits by head, NaN where no run held an example out; the first run that did counts."""
    width = sum(OUTPUTS.values())
    logits = np.full((len(examples), width), np.nan)
    for folder in folders:
        with np.load(folder / "predictions.npz") as found:
            places, values = found["places"], found["logits"].astype(np.float64)
        new = np.isnan(logits[places, 0])
        logits[places[new]] = values[new]
    parts = np.split(logits, np.cumsum(list(OUTPUTS.values()))[:-1], axis=1)
    return dict(zip(OUTPUTS, parts, strict=True))


def _groups(examples: Sequence[Example]) -> NDArray[np.int64]:
    names = {name: number for number, name in enumerate(sorted({e.key for e in examples}))}
    return np.array([names[e.key] for e in examples])


def _measured(
    examples: Sequence[Example],
    truth: Floats,
    scores: dict[str, Floats],
    statistic: Callable[[Floats, Floats], float],
) -> Figure:
    """The statistic of the reader's score with its interval, and of the baselines."""
    groups = _groups(examples)
    own = scores.pop("reader")
    found = interval(groups, lambda rows: statistic(truth[rows], own[rows]))
    found["baselines"] = {name: statistic(truth, score) for name, score in scores.items()}
    found["rows"] = len(examples)
    return found


def _length(examples: Sequence[Example]) -> Floats:
    return np.array([len(e.text.split()) for e in examples], float)


def words(examples: Sequence[Example], truth: Floats) -> Floats:
    """Tf-idf of the read turn alone, with ridge or logistic regression, in five folds."""
    if len(set(truth)) == 2:
        learner: Any = LogisticRegression(C=10, class_weight="balanced", max_iter=2000)
    else:
        learner = Ridge(alpha=1.0)
    folds = np.array([fold_of(e.key, 17, FOLDS) for e in examples])
    texts = np.array([e.text for e in examples])
    score = np.zeros(len(examples))
    for fold in range(FOLDS):
        rest = folds != fold
        if rest.all() or len(set(truth[rest])) < 2:
            continue
        counts = TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, 2))
        learner.fit(counts.fit_transform(texts[rest]), truth[rest])
        held = counts.transform(texts[~rest])
        decide = getattr(learner, "decision_function", learner.predict)
        score[~rest] = decide(held)
    return score


def picked(
    examples: Sequence[Example], score: Floats, corpus: str, kind: str = "answer"
) -> Figure | None:
    """Share of a corpus's pairs whose better answer scores higher, with an interval by voice."""
    pairs = [
        (better, worse)
        for better, worse in pairs_of(examples)
        if examples[better].corpus == corpus
        and examples[better].kind == kind
        and not np.isnan(score[[better, worse]]).any()
    ]
    if not pairs:
        return None
    right = np.array([score[b] > score[w] for b, w in pairs], float)
    longer = np.array([len(examples[b].text) > len(examples[w].text) for b, w in pairs], float)
    groups = np.arange(len(pairs)) // 2
    found = interval(groups, lambda rows: float(right[rows].mean()))
    found["baselines"] = {"length": float(longer.mean())}
    found["rows"] = len(pairs)
    if voiced(corpus):
        keys = np.array([examples[better].key for better, _ in pairs])
        found["voices"] = {key: round(float(right[keys == key].mean()), 3) for key in set(keys)}
    return found


class HeldOut:
    """Examples with the logits of a run that had not seen them, and the figures so far."""

    def __init__(self, examples: Sequence[Example], heads: dict[str, Floats]) -> None:
        self.examples, self.heads = examples, heads
        self.answer = heads["answer"][:, 0]
        self.known = ~np.isnan(self.answer)
        self.found: dict[str, Figure] = {}

    def rows(self, *corpora_: str) -> Places:
        """Places of the held-out examples of some corpora."""
        return np.array(
            [i for i, e in enumerate(self.examples) if self.known[i] and e.corpus in corpora_],
            np.int64,
        )

    def levels(self, places: Places) -> Floats:
        """Levels of graded examples."""
        graded = [self.examples[i].grade for i in places]
        return np.array([grade[1] for grade in graded if grade is not None], np.float64)

    def yes(self, places: Places, head: str) -> Floats:
        """Shares of people who say yes."""
        return np.array([self.examples[i].binary.get(head, 0.0) for i in places], np.float64)

    def ranked(self, name: str, places: Places, score: Floats, truth: Floats) -> None:
        """Add a rank correlation."""
        self._add(name, places, score, truth, spearman)

    def told(self, name: str, places: Places, score: Floats, truth: Floats) -> None:
        """Add an area under the ROC curve."""
        if len(set(truth)) == 2:
            self._add(name, places, score, truth, lambda y, x: auroc(y > 0.5, x))

    def _add(
        self,
        name: str,
        places: Places,
        score: Floats,
        truth: Floats,
        statistic: Callable[[Floats, Floats], float],
    ) -> None:
        if len(places) < FEWEST:
            return
        own = [self.examples[i] for i in places]
        scores = {"reader": score, "length": _length(own), "words": words(own, truth)}
        self.found[name] = _measured(own, truth, scores, statistic)


def figures(examples: Sequence[Example], heads: dict[str, Floats]) -> dict[str, Figure]:
    """Every figure for which held-out logits exist."""
    held = HeldOut(examples, heads)
    _feedback(held)
    for name, names in RATINGS.items():
        places = held.rows(*names)
        held.ranked(name, places, held.answer[places], held.levels(places))
    _chats(examples, held.answer, held.rows("ieval"), held.found)
    for name, (head, corpora_) in JUDGED.items():
        places = held.rows(*corpora_)
        truth = held.yes(places, head)
        agreed = (truth == 0.0) | (truth == 1.0)
        held.told(name, places[agreed], heads[head][places[agreed], 0], truth[agreed])
    _near_misses(held)
    _codes(held)
    _pairs(held)
    _sessions(examples, held.answer, held.found)
    return held.found


def _feedback(held: HeldOut) -> None:
    places = held.rows("esconv_feedback")
    lapsed = np.array([i for i in places if held.examples[i].binary], np.int64)
    truth = held.yes(lapsed, "lapse")
    held.told("experts: lapse of empathy (answer)", lapsed, -held.answer[lapsed], truth)
    held.told("experts: lapse of empathy (lapse)", lapsed, held.heads["lapse"][lapsed, 0], truth)
    held.told("experts: any need of work", places, -held.answer[places], 1.0 - held.levels(places))


def _near_misses(held: HeldOut) -> None:
    said = held.rows("crisis_rallypoint")
    negated = held.rows("crisis_rallypoint_negated")
    both = np.concatenate(
        [said[held.yes(said, "crisis") > 0.5], negated[held.yes(negated, "crisis") < 0.5]]
    )
    score = held.heads["crisis"][both, 0]
    held.told("crisis: negated near misses", both, score, held.yes(both, "crisis"))


def _codes(held: HeldOut) -> None:
    places = held.rows("miti_sentences")
    if not len(places):
        return
    code = np.array([held.examples[i].code for i in places])
    said = held.heads["code"][places].argmax(1)
    labels = range(len(MITI_CODES))
    value = float(f1_score(code, said, average="macro", labels=labels))
    held.found["MITI codes, macro-F1"] = {"value": value, "rows": len(places)}
    graded = np.array([i for i in places if held.examples[i].grade is not None], np.int64)
    held.told("MITI: non-adherent", graded, -held.answer[graded], 1.0 - held.levels(graded))


def _pairs(held: HeldOut) -> None:
    examples, lapse = held.examples, held.heads["lapse"][:, 0]
    names = {e.corpus for e in examples if e.pair and e.kind == "answer"} - {"esconv_feedback"}
    for corpus in sorted(names):
        own, by_lapse = picked(examples, held.answer, corpus), picked(examples, -lapse, corpus)
        if own is not None and by_lapse is not None:
            held.found[f"pairs: {corpus}"] = own | {"lapse": by_lapse["value"]}
    fit = picked(examples, held.heads["fit"][:, 0], "next_answers", "fit")
    if fit is not None:
        held.found["next answers"] = fit


def _chats(
    examples: Sequence[Example],
    answer: Floats,
    places: NDArray[np.int64],
    found: dict[str, Figure],
) -> None:
    """IEval by chat: the mean of its answers against its rating, also at equal length."""
    if not len(places):
        return
    by_chat: dict[str, list[int]] = {}
    for i in places:
        by_chat.setdefault(examples[i].kind, []).append(i)
    chats = list(by_chat.values())
    grades = [examples[chat[0]].grade for chat in chats]
    truth = np.array([grade[1] for grade in grades if grade is not None], np.float64)
    own: Floats = np.array([answer[chat].mean() for chat in chats], np.float64)
    said = [sum(len(examples[i].text.split()) for i in chat) for chat in chats]
    length: Floats = np.array(said, np.float64)
    groups = _groups([examples[chat[0]] for chat in chats])
    found["iEval: understood"] = interval(groups, lambda r: spearman(own[r], truth[r]))
    found["iEval: understood"]["baselines"] = {"length": spearman(length, truth)}
    found["iEval: understood"]["rows"] = len(chats)
    ranks = np.argsort(np.argsort(length)).astype(float)[:, None]
    found["iEval: understood, at equal length"] = interval(
        groups, lambda r: partial_spearman(own[r], truth[r], ranks[r])
    )
    found["iEval: understood, at equal length"]["rows"] = len(chats)


def _sessions(examples: Sequence[Example], answer: Floats, found: dict[str, Figure]) -> None:
    by_session: dict[tuple[str, str], list[int]] = {}
    for i, example in enumerate(examples):
        if example.corpus in ("plain_sessions_good", "plain_sessions_bad") and not np.isnan(
            answer[i]
        ):
            by_session.setdefault((example.corpus, example.kind), []).append(i)
    if len(by_session) < 10:
        return
    good = np.array([corpus.endswith("good") for corpus, _ in by_session])
    own = np.array([answer[each].mean() for each in by_session.values()])
    groups = np.arange(len(good))
    found["plain sessions"] = interval(groups, lambda r: auroc(good[r], own[r]))
    found["plain sessions"]["rows"] = len(good)


def main(
    runs: Annotated[list[Path], typer.Argument(help="Folders with predictions.npz.")],
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    contrast: Annotated[Path, typer.Option(help="Folder of the voices.")] = written.CONTRAST,
    out: Annotated[Path | None, typer.Option(help="JSON file to write.")] = None,
) -> None:
    """Print the figures of the runs together."""
    folder = resolve_data_dir(data_dir)
    examples = [*corpora.load(folder), *written.load(folder, contrast)]
    found = figures(examples, gathered(examples, runs))
    for name, each in found.items():
        others = " ".join(f"{k} {v:.3f}" for k, v in each.get("baselines", {}).items())
        limits = f"[{each['low']:.3f}, {each['high']:.3f}]" if "low" in each else ""
        print(f"{name:40} {each['value']:.3f} {limits} n {each['rows']} {others}")
    if out is not None:
        out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
