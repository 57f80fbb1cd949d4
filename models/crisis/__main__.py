"""`python -m models.crisis fit` and `evaluate`: the crisis probe and the figures of docs/crisis.md.

`fit` fits the probe of a bundle and writes it with its figures into the bundle. `evaluate` measures
the list and the probes of the bundles again and prints the tables; `--write` puts them into
docs/crisis.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from models.bundle import CARD, MANIFEST, sha256, write_manifest
from models.card import model_card
from models.crisis import corpora, figures, turns
from models.crisis.fitting import Fitted, Training, fit_probe
from models.data.corpora import REPOSITORY, resolve_data_dir
from models.evaluate.resampling import auroc
from models.fit.distress import Encoded
from models.pages.tables import with_tables
from stream_app.inference.bundles.bundle import SHIPPED
from stream_app.inference.devices.probe import TurnProbe

app = typer.Typer(add_completion=False)
FILE = "crisis.npy"
PAGE = REPOSITORY / "docs" / "crisis.md"
PROBED = SHIPPED / "nano"
"""The shipped bundle with a probe; the default one has a reader (`models.reader`)."""
BUNDLES = [PROBED]
Data = Annotated[Path | None, typer.Option(help="Folder with the corpora.")]


@app.command()
def fit(
    bundle: Annotated[Path, typer.Option(help="Folder of the bundle.")] = PROBED,
    data_dir: Data = None,
) -> None:
    """Fit the probe and write it into the bundle, with its figures and its card."""
    folder, encoded = resolve_data_dir(data_dir), Encoded(bundle)
    fitted = _fitted(encoded, folder)
    numbers = np.append(fitted.probe.weights, fitted.probe.bias).astype(np.float32)
    np.save(bundle / FILE, numbers)
    content = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    content["crisis"] = {"file": FILE}
    content["files"][FILE] = sha256(bundle / FILE)
    content["metrics"]["crisis"] = measured(encoded, bundle, folder, fitted.for_recall) | {
        "cross_validated": {
            "recall": round(fitted.recall, 3),
            "auroc": round(auroc(fitted.is_crisis, fitted.out_of_fold), 3),
        }
    }
    write_manifest(bundle, content)
    (bundle / CARD).write_text(model_card(content), encoding="utf-8")


@app.command()
def evaluate(
    data_dir: Data = None,
    write: Annotated[bool, typer.Option(help=f"Put the tables into docs/{PAGE.name}.")] = False,
) -> None:
    """Measure the list and the probes of the shipped bundles, and print the tables."""
    folder = resolve_data_dir(data_dir)
    found = {}
    for bundle in BUNDLES:
        content = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
        known = content["metrics"]["crisis"]
        found[bundle.name] = known | measured(Encoded(bundle), bundle, folder, known["for_recall"])
    tables = figures.tables(found)
    print(*tables.values(), sep="\n\n")
    if write:
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")


def measured(encoded: Encoded, bundle: Path, data_dir: Path, for_recall: float) -> dict[str, Any]:
    """The figures of the bundle's probe and of the list."""
    probe = TurnProbe.read(bundle / FILE)
    held_out = turns.split(turns.read())[1]

    def find(texts: list[str]) -> dict[str, figures.Flags]:
        values = probe.probabilities(encoded.vectors(texts))
        return figures.hits(texts, values, for_recall)

    texts = [turn.text for turn in held_out]
    values = probe.probabilities(encoded.vectors(texts))
    return {
        "for_recall": for_recall,
        "auroc": round(auroc(np.array([turn.is_crisis for turn in held_out]), values), 3),
        "passes": figures.kappa(held_out, turns.second_labels()),
        "written": figures.measure(held_out, figures.hits(texts, values, for_recall)),
        "corpora": {
            name: {"turns": len(said), "hits": figures.per_thousand(find(said))}
            for name, said in corpora.client_turns(data_dir).items()
        },
    }


def _fitted(encoded: Encoded, data_dir: Path) -> Fitted:
    written = turns.split(turns.read())[0]
    return fit_probe(
        Training(
            encoded.vectors([turn.text for turn in written]),
            np.array([turn.is_crisis for turn in written]),
            np.array([turn.family for turn in written]),
            encoded.vectors(corpora.assumed_negatives(data_dir)),
        )
    )


if __name__ == "__main__":
    app()
