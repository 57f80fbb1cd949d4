"""How much of the index the reader's answer should be: `python -m models.reader.blend RUN...`.

The reader's answers are those of runs that had not seen them; the mechanisms are a bundle's that
learned from none of these corpora but EPITOME. On EPITOME the bundle's own reader is used, which
has not seen it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from models.construct.benchmark import BenchmarkSessions, Known
from models.construct.bundle_scores import score_with_bundle
from models.construct.fit import LABELLED
from models.data import epitome
from models.data.corpora import resolve_data_dir
from models.data.rated_sessions import RatedSession, RatedTurn
from models.evaluate.resampling import auroc, spearman
from models.labels import COUNSELLOR
from models.reader import corpora, written
from models.reader.evaluation.evaluate import gathered
from models.reader.evaluation.index import ANSWERED, LAPSE, SHARE
from models.reader.examples import Example
from models.reader.tasks import Floats
from stream_app.core.measures.empathy import AnswerModel
from stream_app.inference.bundles import bundle as bundles

Measure = Callable[[Floats], float]
SHARES = (0.0, 0.3, 0.5, 0.7, 1.0)
CHATS, PAIRS = 300, 800


def chats_of(
    examples: Sequence[Example], held: Floats, prefixes: tuple[str, ...], most: int | None = None
) -> list[list[int]]:
    """Places of the held-out answers of each chat or session."""
    found: dict[tuple[str, str], list[int]] = {}
    for place, example in enumerate(examples):
        if example.corpus.startswith(prefixes) and not np.isnan(held[place]):
            found.setdefault((example.corpus, example.kind), []).append(place)
    return list(found.values())[:most]


def features_of(bundle: Path, talks: Sequence[list[tuple[int, str]]]) -> list[dict[str, Floats]]:
    """The counsellor features of each conversation's answers, by the bundle."""
    benchmark = BenchmarkSessions()
    for number, turns in enumerate(talks):
        said = [RatedTurn(role, text) for role, text in turns]
        session = RatedSession("esconv", f"talk:{number}", said)
        benchmark.add(session, Known("real", "peer-support", 0))
    part = score_with_bundle(bundle, benchmark)
    found = []
    for number, turns in enumerate(talks):
        first = int(part.starts[number])
        rows = [first + i for i, (role, _) in enumerate(turns) if role == COUNSELLOR]
        found.append({name: values[rows] for name, values in part.features.counsellor.items()})
    return found


def mechanisms(model: AnswerModel, found: dict[str, Floats]) -> Floats:
    """The answers' values by EPITOME's mechanisms alone, in [0, 1]."""
    terms = [model.weights[name] * found[name] for name in LABELLED]
    return np.asarray(np.clip(model.intercept + np.sum(terms, axis=0), 0.0, 1.0))


def compared(
    answer: Floats, lapse: Floats, bare: Floats, measure: Measure
) -> dict[str, dict[str, float]]:
    """The measure of each share of the answer, without and with lapses subtracted."""
    return {
        str(share): {
            "answers": measure(share * answer + (1.0 - share) * bare),
            "answers minus lapses": measure(share * answer + (1.0 - share) * bare - LAPSE * lapse),
        }
        for share in SHARES
    }


def main(
    runs: Annotated[list[Path], typer.Argument(help="Folders with predictions.npz.")],
    calibration: Annotated[Path, typer.Option(help="What models.reader.calibrate wrote.")],
    out: Annotated[Path, typer.Option(help="JSON file to write.")] = Path(
        "docs/evaluation/reader/blend.json"
    ),
    bundle: Annotated[Path, typer.Option(help="Bundle with a reader.")] = bundles.DEFAULT_BUNDLE,
    like: Annotated[
        Path, typer.Option(help="Bundle whose weights of the mechanisms are taken.")
    ] = (bundles.SHIPPED / "nano"),
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    contrast: Annotated[Path, typer.Option(help="Folder of the voices.")] = written.CONTRAST,
) -> None:
    """Write rank correlations and AUROC for every share of the answer."""
    folder = resolve_data_dir(data_dir)
    known = bundles.load(like).manifest.empathy
    if known is None:
        raise SystemExit(f"error: {like} has no empathy index")
    model = known.domains[known.default].answer
    examples = [*corpora.load(folder), *written.load(folder, contrast)]
    heads, fitted = gathered(examples, runs), json.loads(calibration.read_text(encoding="utf-8"))
    answer, lapse = (_probability(heads[name][:, 0], fitted[name]) for name in ("answer", "lapse"))
    found: dict[str, Any] = {}
    for name, prefixes, most in (
        ("plain sessions", ("plain_sessions_good", "plain_sessions_bad"), None),
        ("iEval", ("ieval",), CHATS),
    ):
        talks = chats_of(examples, answer, prefixes, most)
        last = [examples[places[-1]] for places in talks]
        said = [[*each.turns, (each.role, each.text)] for each in last]
        shown = [mechanisms(model, each) for each in features_of(bundle, said)]
        bare = np.array([each.mean() for each in shown])
        measure = _sessions(last) if name == "plain sessions" else _rated(last)
        well, ill = (np.array([v[places].mean() for places in talks]) for v in (answer, lapse))
        found[name] = {"n": len(talks), "shares": compared(well, ill, bare, measure)}
        if name == "plain sessions":
            values = [
                SHARE * answer[places]
                + (1.0 - SHARE) * each[-len(places) :]
                - LAPSE * lapse[places]
                for places, each in zip(talks, shown, strict=True)
            ]
            found[name]["below"] = _below(last, values)
    pairs = list(epitome.load(folder))[::3][:PAIRS]
    own = features_of(bundle, [[(t.role, t.text) for t in pair.turns] for pair in pairs])
    totals = np.array([_total(pair.turns[-1].labels) for pair in pairs])
    well, ill = (np.array([each[name][-1] for each in own]) for name in ("answer", "lapse"))
    bare = np.array([mechanisms(model, each)[-1] for each in own])
    by_share = compared(well, ill, bare, lambda value: spearman(value, totals))
    found["EPITOME"] = {"n": len(pairs), "shares": by_share}
    out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


def _probability(logit: Floats, line: Sequence[float]) -> Floats:
    slope, intercept = line
    return np.asarray(1.0 / (1.0 + np.exp(-(slope * logit + intercept))))


def _sessions(last: Sequence[Example]) -> Measure:
    good = np.array([each.corpus.endswith("good") for each in last])
    return lambda value: auroc(good, value)


def _below(last: Sequence[Example], values: Sequence[Floats]) -> dict[str, float]:
    """Share of the answers that do not count as answered, in plainly good and bad sessions."""
    return {
        kind: float(
            np.mean(
                np.concatenate(
                    [v for each, v in zip(last, values, strict=True) if each.corpus.endswith(kind)]
                )
                < ANSWERED
            )
        )
        for kind in ("good", "bad")
    }


def _rated(last: Sequence[Example]) -> Measure:
    rating = np.array([each.grade[1] for each in last if each.grade is not None], float)
    return lambda value: spearman(value, rating)


def _total(labels: dict[str, tuple[float, ...]]) -> float:
    """Total of the mechanisms' labelled levels, 0-6."""
    return sum(level * share for name in LABELLED for level, share in enumerate(labels[name]))


if __name__ == "__main__":
    typer.run(main)
