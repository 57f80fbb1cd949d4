"""`python -m export.vector_precision`: what a byte for each number of a turn's vectors changes.

Windows store vectors in bytes (`stream_app.inference.turn_vectors`). Shipped bundles predict the
turns that they were not trained on with half floats and with bytes, and the gate of
`python -m export` compares both. Writes the table of decision 4.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from export import gate
from models.batches import FINAL, tokenise
from models.data import load_for_command
from models.encoder import load_tokenizer
from models.evaluate.predict import Predictions, predict
from models.evaluate.tables import percent, table, with_tables
from models.heads import through_half
from models.onnx_model import OnnxModel, as_stored
from models.perceived import left_out_of
from stream_app.inference import bundle as bundles
from stream_app.inference.bundle import Bundle

PAGE = Path("docs/decisions/0004-eight-bits.md")
TABLE = "vectors"
SHIPPED = [Path("default"), Path("nano")]


def main(
    bundle: Annotated[list[Path], typer.Option(help="Bundles.")] = SHIPPED,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    page: Annotated[Path, typer.Option(help="The page with the table.")] = PAGE,
    threads: int = 2,
) -> None:
    """Compare half floats and bytes; exit status 1 if bytes do not pass the gate."""
    torch.set_num_threads(threads)
    conversations = load_for_command(data_dir)
    found = {}
    for folder in bundle:
        known = bundles.load(bundles.find(folder))
        test = left_out_of(conversations, known.manifest.training)
        found[known.manifest.bundle_id] = compared(known, test, threads)
    content = precision_table(found)
    print(content)
    page.write_text(with_tables(page.read_text("utf-8"), {TABLE: content}), "utf-8")
    if not all(figures["passes"] for figures in found.values()):
        raise SystemExit("error: bytes do not pass the gate")


def compared(bundle: Bundle, test: list[Any], threads: int = 1) -> dict[str, Any]:
    """The gate's figures of bytes, with half floats as the reference.

    Also `probability`: the mean absolute difference of all heads' probabilities (0-1).
    """
    manifest = bundle.manifest
    tokenizer = load_tokenizer(bundle.file(manifest.tokenizer.file))
    segments = tokenise(test, tokenizer)

    def predicted(rounding: Any) -> Predictions:
        model = OnnxModel(
            bundle.file(manifest.encoder.file),
            bundle.file(manifest.head.file),
            threads=threads,
            alone=not manifest.encoder.batch_independent,
            rounding=rounding,
        )
        return predict(model, segments, FINAL, tokenizer)

    before, after = predicted(through_half), predicted(as_stored)
    differences = [
        np.abs(_softmax(before.everywhere[name]) - _softmax(after.everywhere[name])).ravel()
        for name in before.everywhere
    ]
    return {
        **gate.compare(before, after),
        "probability": float(np.concatenate(differences).mean()),
    }


def precision_table(found: dict[str, dict[str, Any]]) -> str:
    """A row for each bundle: the worst head of each figure."""
    rows = []
    for bundle_id, figures in found.items():
        heads = figures["heads"]
        least = min(heads, key=lambda name: heads[name]["agreement"])
        worst = min(heads, key=lambda name: heads[name]["macro_f1_difference"])
        low, high = (100 * end for end in heads[worst]["macro_f1_interval"])
        difference = 100 * heads[worst]["macro_f1_difference"]
        rows.append(
            [
                f"`{bundle_id}`",
                f"{percent(heads[least]['agreement'], 2)} ({least.replace('_', ' ')})",
                f"{difference:+.2f} [{low:+.2f}, {high:+.2f}] ({worst.replace('_', ' ')})",
                f"{figures['probability']:.5f}",
                "yes" if figures["passes"] else "no",
            ]
        )
    header = (
        *("bundle", "equal labels, %, worst head", "macro-F1, points, worst head"),
        *("mean difference of probabilities", "passes the gate"),
    )
    return table(header, rows)


def _softmax(logits: Any) -> Any:
    shifted = np.exp(logits - logits.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


if __name__ == "__main__":
    typer.run(main)
