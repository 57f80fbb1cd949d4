"""Tests how well intents tell sentences apart, and prints the result."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from msgspec import Struct
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from stream_app.contracts.events import Role
from stream_app.core.session.ports import Scorer
from stream_app.errors import RapportError
from stream_app.inference.intent_model import left_out_hits
from stream_app.inference.intents import IntentComparer
from stream_app.recordings.json_lines import read_lines

AT_ONCE: Final = 256
MAX_SHOWN: Final = 90
"""Characters of a sentence in a list."""


class UtteranceFileError(RapportError):
    """A file of labelled utterances cannot be read."""


class Utterance(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a file of labelled utterances; ``intents``: the names of those that it has."""

    text: str
    role: Role
    intents: frozenset[str]


class Hit(Struct, frozen=True):
    """A sentence with an intent. ``score`` None: a leave-one-out hit. ``similarity``: cosine."""

    text: str
    intent: str
    score: float | None
    right: bool
    example: str
    similarity: float


class IntentFigures(Struct, frozen=True):
    """Counts of one intent: sentences that have it, hits, and hits that are right."""

    intent: str
    positives: int
    hits: int
    right: int

    @property
    def precision(self) -> float | None:
        """Share of the hits that are right, 0-1; None without hits."""
        return self.right / self.hits if self.hits else None

    @property
    def recall(self) -> float | None:
        """Share of the positives that are hit, 0-1; None without positives."""
        return self.right / self.positives if self.positives else None


class Tested(Struct, frozen=True):
    """The result of a test."""

    figures: list[IntentFigures]
    hits: list[Hit]
    sentences: int


def read_utterances(path: Path, known: Iterable[str]) -> list[Utterance]:
    """Read JSON lines with ``text``, ``role`` and ``intents``.

    Raises:
        UtteranceFileError: it cannot be read, or a line is not valid; the message has the line.
    """
    names, found = set(known), []
    try:
        lines = list(read_lines(path))
    except OSError as problem:
        raise UtteranceFileError(f"{path}: cannot be read: {problem.strerror}") from None
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            utterance = msgspec.json.decode(line, type=Utterance)
        except UnicodeDecodeError:
            raise UtteranceFileError(
                f"{path}:{number}: not valid UTF-8; save the file in UTF-8"
            ) from None
        except (msgspec.DecodeError, RecursionError) as problem:
            raise UtteranceFileError(f"{path}:{number}: {problem}") from None
        if not utterance.role.is_scored:
            raise UtteranceFileError(
                f"{path}:{number}: only clients and counsellors have intents, not the role "
                f"{utterance.role.value}"
            )
        if unknown := utterance.intents - names:
            raise UtteranceFileError(
                f"{path}:{number}: the file has no intent {', '.join(sorted(unknown))}"
            )
        found.append(utterance)
    if not found:
        raise UtteranceFileError(f"{path}: there is no utterance in it")
    return found


def test_examples(comparer: IntentComparer) -> Tested:
    """Each example, counter-example and ordinary turn as if the file did not contain it."""
    sentences, fitted = comparer.sentences, comparer.fitted
    hits = left_out_hits(fitted, sentences)
    figures, found = [], []
    for column, intent in enumerate(comparer.intents.intents):
        own, positive = hits[:, column], sentences.is_example[:, column]
        figures.append(
            IntentFigures(
                intent.name, int(positive.sum()), int(own.sum()), int((own & positive).sum())
            )
        )
        for row in np.flatnonzero(own).tolist():
            text = sentences.texts[row]
            example, similarity = comparer.nearest(fitted.units[row], intent.name, without=text)
            right = bool(positive[row])
            found.append(Hit(text, intent.name, None, right, example, similarity))
    return Tested(figures, found, len(sentences.texts))


def test_utterances(
    comparer: IntentComparer, scorer: Scorer, utterances: Sequence[Utterance]
) -> Tested:
    """Labelled utterances as the worker would read them."""
    found: list[Hit] = []
    for start in range(0, len(utterances), AT_ONCE):
        some = utterances[start : start + AT_ONCE]
        roles = [each.role for each in some]
        vectors = [e.vectors for e in scorer.encode([each.text for each in some], roles)]
        for each, vector, hits in zip(some, vectors, comparer.hits(vectors, roles), strict=True):
            for name, score in hits.items():
                example, similarity = comparer.nearest_example(vector, name)
                right = name in each.intents
                found.append(Hit(each.text, name, score, right, example, similarity))
    figures = [
        IntentFigures(
            name,
            sum(name in each.intents for each in utterances),
            sum(hit.intent == name for hit in found),
            sum(hit.intent == name and hit.right for hit in found),
        )
        for name in comparer.intents.names
    ]
    return Tested(figures, found, len(utterances))


def report(tested: Tested, console: Console, *, with_hits: bool) -> None:
    """Print precision and recall of each intent and, if wanted, all hits with their example."""
    if with_hits:
        for line in _lines(tested):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("intent", no_wrap=True)
    for name in ("sentences", "hits", "right", "precision, %", "recall, %"):
        table.add_column(name, justify="right")
    for each in tested.figures:
        counts = map(str, (each.positives, each.hits, each.right))
        table.add_row(escape(each.intent), *counts, _percent(each.precision), _percent(each.recall))
    console.print(table)


def show(comparer: IntentComparer, console: Console) -> None:
    """Print the intents of a valid file."""
    table = Table()
    for name in ("intent", "title", "role", "examples", "counter-examples", "threshold"):
        table.add_column(name, overflow="fold")
    for intent in comparer.intents.intents:
        table.add_row(
            escape(intent.name),
            escape(intent.words),
            "both" if len(intent.roles) > 1 else next(iter(intent.roles)).value,
            str(len(intent.examples)),
            str(len(intent.counter_examples)),
            f"{intent.threshold:g}",
        )
    console.print(table)
    digest = comparer.intents.digest
    console.print(f"{len(comparer.intents.intents)} intents, digest {digest}", highlight=False)


def _lines(tested: Tested) -> Iterator[str]:
    for hit in tested.hits:
        mark = "right" if hit.right else "WRONG"
        score = "" if hit.score is None else f"  {hit.score:.2f}"
        yield f"{mark}  {hit.intent}{score}  {_short(hit.text)}"
        if hit.example:
            yield f"       nearest example ({hit.similarity:.2f}): {_short(hit.example)}"


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= MAX_SHOWN else f"{plain[: MAX_SHOWN - 1]}…"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f}"
