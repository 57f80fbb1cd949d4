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

from models.data.split import fold_of
from models.reader import corpora, written
from models.reader.examples import MITI_CODES, Example, pairs_of
from models.reader.model import OUTPUTS
from models.reader.train import FOLDS, voiced
from models.resampling import auroc, interval, partial_spearman, spearman

Floats = NDArray[np.float64]
Figure = dict[str, Any]


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
    voices = sorted({examples[b].key for b, _ in pairs})
    found["voices"] = {
        voice: round(
            float(np.mean([r for r, (b, _) in zip(right, pairs, strict=True) if examples[b].key == voice])), 3
        )
        for voice in voices
        if voiced(corpus)
    }
    return found


def figures(examples: Sequence[Example], heads: dict[str, Floats]) -> dict[str, Figure]:
    """Every figure for which held-out logits exist."""
    answer = heads["answer"][:, 0]
    known = ~np.isnan(answer)

    def rows(*names: str) -> NDArray[np.int64]:
        return np.array(
            [i for i, e in enumerate(examples) if known[i] and e.corpus in names], np.int64
        )

    def some(places: NDArray[np.int64]) -> list[Example]:
        return [examples[i] for i in places]

    found: dict[str, Figure] = {}

    def ranked(name: str, places: NDArray[np.int64], score: Floats, truth: Floats) -> None:
        if len(places) < 10:
            return
        own = some(places)
        found[name] = _measured(
            own,
            truth,
            {"reader": score, "length": _length(own), "words": words(own, truth)},
            spearman,
        )

    def told(name: str, places: NDArray[np.int64], score: Floats, truth: Floats) -> None:
        if len(places) < 10 or len(set(truth)) < 2:
            return
        own = some(places)
        found[name] = _measured(
            own,
            truth,
            {"reader": score, "length": _length(own), "words": words(own, truth)},
            lambda y, x: auroc(y > 0.5, x),
        )

    def levels(places: NDArray[np.int64]) -> Floats:
        return np.array([examples[i].grade[1] for i in places], float)  # type: ignore[index]

    places = rows("esconv_feedback")
    lapsed = places[[bool(examples[i].binary) for i in places]] if len(places) else places
    truth = np.array([examples[i].binary["lapse"] for i in lapsed])
    told("experts: lapse of empathy (answer)", lapsed, -answer[lapsed], truth)
    told("experts: lapse of empathy (lapse)", lapsed, heads["lapse"][lapsed, 0], truth)
    told("experts: any need of work", places, -answer[places], 1.0 - levels(places))
    for name, names in (
        ("rated answers, all", ("rated_human", "rated_model")),
        ("rated answers, people's", ("rated_human",)),
        ("turn empathy (WASSA)", ("wassa_chats",)),
        ("rated exchanges", ("empathetic_exchanges",)),
    ):
        places = rows(*names)
        ranked(name, places, answer[places], levels(places))
    _chats(examples, answer, rows("ieval"), found)
    for name, head, names in (
        ("opportunity, emotional", "emotional_opportunity", ("eaf_people",)),
        ("opportunity, interpretation", "interpretation_opportunity", ("eaf_people",)),
        ("crisis: RallyPoint", "crisis", ("crisis_rallypoint", "crisis_rallypoint_negated")),
        ("crisis: C-SSRS", "crisis", ("crisis_cssrs",)),
        ("crisis: inputs", "crisis", ("crisis_inputs",)),
    ):
        places = rows(*names)
        truth = np.array([examples[i].binary.get(head, 0.0) for i in places])
        agreed = (truth == 0.0) | (truth == 1.0)
        told(name, places[agreed], heads[head][places[agreed], 0], truth[agreed])
    negated = rows("crisis_rallypoint_negated")
    said = rows("crisis_rallypoint")
    said = said[[examples[i].binary["crisis"] > 0.5 for i in said]] if len(said) else said
    negated = negated[[examples[i].binary["crisis"] < 0.5 for i in negated]] if len(negated) else negated
    both = np.concatenate([said, negated])
    truth = np.array([examples[i].binary["crisis"] for i in both])
    told("crisis: negated near misses", both, heads["crisis"][both, 0], truth)
    places = rows("miti_sentences")
    if len(places):
        code = np.array([examples[i].code for i in places])
        said_code = heads["code"][places].argmax(1)
        found["MITI codes, macro-F1"] = {
            "value": float(f1_score(code, said_code, average="macro", labels=range(len(MITI_CODES)))),
            "rows": len(places),
        }
        graded = places[[examples[i].grade is not None for i in places]]
        told("MITI: non-adherent", graded, -answer[graded], 1.0 - levels(graded))
    names = sorted({e.corpus for e in examples if e.pair and e.kind == "answer"})
    for corpus in names:
        own = picked(examples, answer, "esconv_alternative" if corpus == "esconv_feedback" else corpus)
        if own is not None:
            found[f"pairs: {corpus}"] = own
            low = picked(examples, -heads["lapse"][:, 0], corpus)
            found[f"pairs: {corpus}"]["lapse"] = low["value"] if low else None
    fit = picked(examples, heads["fit"][:, 0], "next_answers", "fit")
    if fit is not None:
        found["next answers"] = fit
    _sessions(examples, answer, found)
    return found


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
    truth = np.array([examples[chat[0]].grade[1] for chat in chats], float)  # type: ignore[index]
    own = np.array([answer[chat].mean() for chat in chats])
    length = np.array([sum(len(examples[i].text.split()) for i in chat) for chat in chats], float)
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
        if example.corpus in ("plain_sessions_good", "plain_sessions_bad") and not np.isnan(answer[i]):
            by_session.setdefault((example.corpus, example.kind), []).append(i)
    if len(by_session) < 10:
        return
    good = np.array([corpus.endswith("good") for corpus, _ in by_session])
    own = np.array([answer[each].mean() for each in by_session.values()])
    groups = np.arange(len(good))
    found["plain sessions"] = interval(groups, lambda r: auroc(good[r], own[r]))
    found["plain sessions"]["rows"] = len(good)


def main(
    data_dir: Annotated[Path, typer.Option(help="Folder with the corpora.")],
    runs: Annotated[list[Path], typer.Argument(help="Folders with predictions.npz.")],
    contrast: Annotated[Path, typer.Option(help="Folder of the voices.")] = written.CONTRAST,
    out: Annotated[Path | None, typer.Option(help="JSON file to write.")] = None,
) -> None:
    """Print the figures of the runs together."""
    examples = [*corpora.load(data_dir), *written.load(data_dir, contrast)]
    found = figures(examples, gathered(examples, runs))
    for name, each in found.items():
        others = " ".join(f"{k} {v:.3f}" for k, v in each.get("baselines", {}).items())
        limits = f"[{each['low']:.3f}, {each['high']:.3f}]" if "low" in each else ""
        print(f"{name:40} {each['value']:.3f} {limits} n {each['rows']} {others}")
    if out is not None:
        out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
