"""`python -m models.intents evaluate`: the figures of docs/intents.md.

`evaluate` compares the shipped intents with the labelled utterances and prints the tables;
`--write` puts them into docs/intents.md. `kappa` prints the agreement of the two labelling passes,
`penalty` the leave-one-out figures that the penalty of the closed-form fit was chosen by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import average_precision_score

from models.crisis import turns as crisis_turns
from models.data.corpora import REPOSITORY, resolve_data_dir
from models.intents import figures, utterances
from models.pages.tables import table, with_tables
from stream_app.contracts.events import Role
from stream_app.core.measures.intents import IntentSet
from stream_app.inference import intent_files
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.intent_model import Floats, collect, fit, scale, units
from stream_app.inference.intents import IntentComparer
from stream_app.inference.scorer import OnnxScorer

app = typer.Typer(add_completion=False)
PAGE = REPOSITORY / "docs" / "intents.md"
BUNDLES = ("default", "nano")
WORD = re.compile(r"\b\w+\b").pattern
PENALTIES = (0.3, 1.0, 3.0, 10.0, 30.0)
Data = Annotated[Path | None, typer.Option(help="Folder with the corpora.")]
Encode = Callable[[Sequence[str]], list[bytes]]


@app.command()
def kappa(data_dir: Data = None) -> None:
    """Print the agreement of the two labelling passes."""
    labelled = utterances.read(resolve_data_dir(data_dir))
    names = intent_files.load(Path("service")).names
    found = figures.agreement(labelled, utterances.second_labels(), names)
    print(f"{found['utterances']} utterances, labels of {found['different']} differ")
    print(f"kappa over all decisions {found['kappa']:.3f}")
    print(*(f"{name} {value:.2f}" for name, value in found["intents"].items()), sep="\n")


@app.command()
def penalty() -> None:
    """Print the leave-one-out average precision of the service intents by penalty."""
    collected = collect(intent_files.load(Path("service")), intent_files.background())
    for name in BUNDLES:
        encode = encoder(name)
        vectors = encode(collected.texts)
        for value in PENALTIES:
            fitted = fit(collected, _known(vectors), value)
            found = [
                average_precision_score(collected.is_example[:, k], fitted.left_out[:, k])
                for k in range(collected.is_example.shape[1])
            ]
            print(f"{name}: penalty {value:g}: {100 * np.mean(found):.1f} %")


@app.command()
def evaluate(
    data_dir: Data = None,
    write: Annotated[bool, typer.Option(help=f"Put the tables into docs/{PAGE.name}.")] = False,
) -> None:
    """Measure the shipped sets and print the tables."""
    folder = resolve_data_dir(data_dir)
    labelled = utterances.read(folder)
    service = intent_files.load(Path("service"))
    encoders = {f"`{name}`": encoder(name) for name in BUNDLES}
    found = {name: on_parts(service, labelled, encode) for name, encode in encoders.items()}
    for name, encode in encoders.items():
        rows_of = centred(service, encode)
        found[f"{name}, nearest example"] = nearest_on_parts(service, labelled, rows_of)
    without = nearest_on_parts(service, labelled, tf_idf(service))
    found["tf-idf, nearest example"] = without
    kappas = figures.agreement(labelled, utterances.second_labels(), service.names)
    tables = {
        "overall": figures.overall(found),
        "service": figures.by_intent(found["`default`"], without[utterances.WRITTEN], kappas),
        "agreement": (
            f"Labels of {kappas['different']} of the {kappas['utterances']} utterances differ "
            f"between the passes; Cohen's kappa over all decisions is {kappas['kappa']:.2f}."
        ),
        "crisis": crisis(encoders),
        "talk": non_adherent(encoders, folder),
    }
    print(*tables.values(), sep="\n\n")
    if write:
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")


def on_parts(
    service: IntentSet, labelled: Sequence[utterances.LabelledUtterance], encode: Encode
) -> dict[str, dict[str, object]]:
    """Figures by part of the labelled utterances."""
    comparer = compare(service, encode)
    found = {}
    for part in (utterances.WRITTEN, utterances.DIALOGUES):
        own = [each for each in labelled if each.part == part]
        truth = np.array([[name in each.intents for name in service.names] for each in own])
        found[part] = figures.measure(
            truth, hits(comparer, encode, [e.text for e in own], Role.COUNSELLOR), service.names
        )
    return found


def crisis(encoders: dict[str, Encode]) -> str:
    """A table of hits on the turns of docs/crisis.md."""
    turns = crisis_turns.read()
    known = {
        text.casefold()
        for intent in intent_files.load(Path("crisis")).intents
        for text in (*intent.examples, *intent.counter_examples)
    }
    turns = [turn for turn in turns if turn.text.casefold() not in known]
    truth = np.array([turn.is_crisis for turn in turns])
    rows = []
    for name, encode in encoders.items():
        comparer = compare(intent_files.load(Path("crisis")), encode)
        own_hits = hits(comparer, encode, [turn.text for turn in turns], Role.CLIENT)
        found = own_hits.sum(axis=1, keepdims=True) > 0
        own = figures.measure(truth[:, None], found, ["any"])["intents"]["any"]
        cells = [
            f"{100 * own[what]['value']:.0f} "
            f"({100 * own[what]['low']:.0f}–{100 * own[what]['high']:.0f})"
            for what in ("recall", "precision")
        ]
        rows.append([name, str(len(turns)), str(int(truth.sum())), *cells])
    return table(["bundle", "turns", "crisis language", "recall, %", "precision, %"], rows)


def non_adherent(encoders: dict[str, Encode], data_dir: Path) -> str:
    """A table of hits in therapists' turns of AnnoMI by the quality of the session."""
    by_quality = utterances.therapist_turns(data_dir)
    rows = []
    for name, encode in encoders.items():
        known = intent_files.load(Path("mi_non_adherent"))
        comparer = compare(known, encode)
        found = {
            quality: hits(comparer, encode, texts, Role.COUNSELLOR)
            for quality, texts in by_quality.items()
        }
        for k, intent in enumerate(known.names):
            rates = [f"{1000 * own[:, k].mean():.0f}" for own in found.values()]
            rows.append([f"`{intent}` ({name})", *rates])
    header = [f"{quality} quality, {len(texts):,} turns" for quality, texts in by_quality.items()]
    return table(["hits in 1,000 turns", *header], rows)


def compare(known: IntentSet, encode: Encode) -> IntentComparer:
    """Compute the weights from an encoder's vectors."""
    collected = collect(known, intent_files.background())
    return IntentComparer(known, collected, fit(collected, encode))


def hits(
    comparer: IntentComparer, encode: Encode, texts: Sequence[str], role: Role
) -> np.typing.NDArray[np.bool_]:
    """Whether each text has each intent, [texts, intents]."""
    found = comparer.hits(encode(texts), [role] * len(texts))
    return np.array([[name in own for name in comparer.intents.names] for own in found])


def encoder(bundle: str) -> Encode:
    """A shipped bundle's encoder."""
    scorer = OnnxScorer(bundles.load(bundles.find(bundle)))

    def encode(texts: Sequence[str]) -> list[bytes]:
        return [
            item.vectors
            for start in range(0, len(texts), 256)
            for item in scorer.encode(list(texts[start : start + 256]))
        ]

    return encode


def _known(vectors: list[bytes]) -> Encode:
    return lambda _: vectors


def nearest_on_parts(
    service: IntentSet,
    labelled: Sequence[utterances.LabelledUtterance],
    rows_of: Callable[[Sequence[str]], Floats],
) -> dict[str, dict[str, object]]:
    """A baseline: the cosine with the nearest example, of rows with length 1.

    The threshold is chosen as for the intents: greatest F1 over the sentences of the file and the
    ordinary turns, each compared with the others only.
    """
    collected = collect(service, intent_files.background())
    rows = rows_of(collected.texts)
    products = rows @ rows.T
    np.fill_diagonal(products, -1.0)
    found = {}
    for part in (utterances.WRITTEN, utterances.DIALOGUES):
        own = [each for each in labelled if each.part == part]
        other = rows_of([each.text for each in own]) @ rows.T
        truth = np.array([[name in each.intents for name in service.names] for each in own])
        above = np.zeros_like(truth)
        for k in range(len(service.names)):
            examples = collected.is_example[:, k]
            cut, _ = scale(products[:, examples].max(axis=1), examples)
            above[:, k] = other[:, examples].max(axis=1) >= cut
        found[part] = figures.measure(truth, above, service.names)
    return found


def tf_idf(service: IntentSet) -> Callable[[Sequence[str]], Floats]:
    """Rows of words and pairs of words, weighted on the sentences of the file."""
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), token_pattern=WORD)
    vectorizer.fit(collect(service, intent_files.background()).texts)
    return lambda texts: np.asarray(vectorizer.transform(texts).toarray())


def centred(service: IntentSet, encode: Encode) -> Callable[[Sequence[str]], Floats]:
    """Rows of a bundle's vectors relative to the mean of the sentences of the file."""
    centre = units(encode(collect(service, intent_files.background()).texts)).mean(axis=0)

    def rows_of(texts: Sequence[str]) -> Floats:
        rows = units(encode(texts)) - centre
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))

    return rows_of


if __name__ == "__main__":
    app()
