"""Answers written for this project: ordinary pairs and sessions, quartets, edits, two manners.

A voice is held out as a whole. Words of the answer alone tell the better of an ordinary pair from
the worse; their log-odds, fitted on the other voices, are the `bias` of a pair, which training adds
to the reader's (product of experts: Clark et al. 2019, He et al. 2019).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from models.labels import CLIENT, COUNSELLOR
from models.reader.examples import Example

CONTRAST = Path(__file__).parent / "contrast"
"""Folder with one folder a voice: `quartets.jsonl`, `edits.jsonl`, `manners.jsonl`."""
BIASED = ("plain_answers",)
"""Corpora whose words alone tell better from worse: they teach no head but through `bias`."""
ROLES = {"c": CLIENT, "h": COUNSELLOR}
GIVEN = "new-mexico"
"""Voice of the given quartets and edits."""


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Rows of a file of JSON lines, gzipped or not; none where there is no file."""
    if not path.is_file():
        return []
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def _turns(context: list[list[str]], client: str) -> tuple[tuple[int, str], ...]:
    return (*((ROLES[role], text) for role, text in context), (CLIENT, client))


def _pair(
    corpus: str,
    voice: str,
    name: str,
    turns: tuple[tuple[int, str], ...],
    better: str,
    worse: str,
    bias: float = 0.0,
) -> Iterator[Example]:
    for text, is_better in ((better, True), (worse, False)):
        yield Example(
            corpus,
            voice,
            COUNSELLOR,
            text,
            turns,
            {"lapse": float(not is_better)} if corpus not in BIASED else {},
            pair=name,
            better=is_better,
            bias=bias if is_better else 0.0,
        )


def quartets(rows: list[dict[str, Any]], voice: str) -> Iterator[Example]:
    """Two clients and two answers, each right for one of them: two pairs a quartet."""
    for number, row in enumerate(rows):
        for own, other in ((1, 2), (2, 1)):
            turns = _turns(row.get(f"context_{own}") or [], row[f"client_{own}"])
            name = f"quartet-{voice}-{number}-{own}"
            yield from _pair(
                "quartets", voice, name, turns, row[f"fits_{own}"], row[f"fits_{other}"]
            )


def edits(rows: list[dict[str, Any]], voice: str) -> Iterator[Example]:
    """An answer, and the same with a few words changed so that it fails this client."""
    for number, row in enumerate(rows):
        turns = _turns(row.get("context") or [], row["client"])
        yield from _pair(
            "edits", voice, f"edit-{voice}-{number}", turns, row["better"], row["worse"]
        )


def manners(rows: list[dict[str, Any]], voice: str) -> Iterator[Example]:
    """A better and a worse act, each said plainly and warmly: the four pairs of them."""
    for number, row in enumerate(rows):
        turns = _turns(row.get("context") or [], row["client"])
        for good in ("plain", "warm"):
            for bad in ("plain", "warm"):
                name = f"manner-{voice}-{number}-{good}-{bad}"
                corpus = f"manners_{good}_{bad}"
                better, worse = row[f"better_{good}"], row[f"worse_{bad}"]
                yield from _pair(corpus, voice, name, turns, better, worse)


def plain_answers(data_dir: Path) -> Iterator[Example]:
    """The given ordinary pairs, each with the bias of its answers' words."""
    rows = rows_of(data_dir / "plain_answers.jsonl.gz")
    biases = word_bias(
        [row["better"] for row in rows], [row["worse"] for row in rows], [r["voice"] for r in rows]
    )
    for number, (row, bias) in enumerate(zip(rows, biases, strict=True)):
        turns = _turns(row["context"], row["client"])
        name = f"plain-{number}"
        pair = _pair("plain_answers", row["voice"], name, turns, row["better"], row["worse"], bias)
        yield from pair
        called = row["reader"].get("opportunity")
        if called is not None:
            yield Example(
                "plain_clients",
                row["voice"],
                CLIENT,
                row["client"],
                turns[:-1],
                {"emotional_opportunity": called / 10},
            )


def plain_sessions(data_dir: Path) -> Iterator[Example]:
    """Answers of the given ordinary sessions, with a reader's marks 0-10 as six levels."""
    for row in rows_of(data_dir / "plain_sessions.jsonl.gz"):
        turns = [(ROLES[turn[0]], turn[1]) for turn in row["turns"]]
        marks = iter(row["reader"]["answers"])
        for place, (role, text) in enumerate(turns):
            if role != COUNSELLOR:
                continue
            mark = next(marks, None)
            yield Example(
                f"plain_sessions_{row['truth']}",
                row["voice"],
                role,
                text,
                tuple(turns[:place]),
                {},
                None if mark is None else ("marks", min(5, round(mark / 2))),
                kind=row["id"],
            )


def word_bias(better: list[str], worse: list[str], voices: list[str]) -> list[float]:
    """Log-odds of the better answer by tf-idf of the answers alone, fitted without its voice."""
    texts = [text for pair in zip(better, worse, strict=True) for text in pair]
    groups = np.repeat(np.array(voices), 2)
    right = np.tile([1, 0], len(better))
    margins = np.zeros(len(texts))
    for voice in sorted(set(voices)):
        own = groups == voice
        counts = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
        known = counts.fit_transform([t for t, held in zip(texts, own, strict=True) if not held])
        model = LogisticRegression(C=3, max_iter=500).fit(known, right[~own])
        held = counts.transform([t for t, is_own in zip(texts, own, strict=True) if is_own])
        margins[own] = model.decision_function(held)
    return [float(value) for value in margins[0::2] - margins[1::2]]


def load(data_dir: Path, contrast: Path = CONTRAST) -> list[Example]:
    """All written examples: of the project's voices, and the given ones."""
    found = [*plain_answers(data_dir), *plain_sessions(data_dir)]
    found += quartets(rows_of(data_dir / "plain_quartets.jsonl.gz"), GIVEN)
    found += edits(rows_of(data_dir / "plain_edits.jsonl.gz"), GIVEN)
    for folder in sorted(contrast.iterdir()) if contrast.is_dir() else []:
        if folder.is_dir():
            found += quartets(rows_of(folder / "quartets.jsonl"), folder.name)
            found += edits(rows_of(folder / "edits.jsonl"), folder.name)
            found += manners(rows_of(folder / "manners.jsonl"), folder.name)
    return found
