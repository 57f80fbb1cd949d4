"""`python -m export.vectors --bundle FOLDER`: keep the vectors of turns in bytes.

For bundles that were exported with half floats. The graphs stay as they are; the gate of the export
compares both forms on all held-out turns, and the figures of the manifest are measured again.
Probes are fitted on these vectors: fit them afterwards (`models.distress`, `models.crisis`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from tokenizers import Tokenizer

from export import gate
from export.reactions import calibration_of
from models.batches import FINAL, PROVISIONAL, tokenise
from models.bundle import CARD, ENCODER, HEAD, MANIFEST, TOKENIZER, VERSION, write_manifest
from models.card import model_card
from models.data import Conversation, load_for_command
from models.data.split import split
from models.evaluate.predict import predict
from models.evaluate.report import measure
from models.onnx_model import OnnxModel
from stream_app.inference.bundle import VectorForm


class FormError(ValueError):
    """The bundle's vectors are in bytes already, or too much would change."""


def main(
    bundle: Annotated[Path, typer.Option(help="Folder of the bundle; it is changed.")] = Path(
        "stream_app/bundles/default"
    ),
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    threads: int = 1,
) -> None:
    """Compare both forms and write the new one into the bundle."""
    torch.set_num_threads(threads)
    try:
        found = convert(bundle, load_for_command(data_dir), threads)
    except FormError as problem:
        raise SystemExit(f"error: {problem}") from problem
    least = min(found["heads"].values(), key=lambda head: float(head["agreement"]))
    print(json.dumps(found, indent=1))
    print(f"equal labels: at least {100 * least['agreement']:.2f} % in every head")


def convert(bundle: Path, conversations: list[Conversation], threads: int = 1) -> dict[str, Any]:
    """Write the form and the figures into the bundle; returns the comparison.

    Raises:
        FormError: the vectors are in bytes already, or the gate does not pass.
    """
    content: dict[str, Any] = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    if content["encoder"].get("vectors") == VectorForm.BYTES:
        raise FormError(f"the vectors of {bundle} are in bytes already")
    tokenizer = Tokenizer.from_file(str(bundle / TOKENIZER))
    tokenizer.no_truncation()
    test = split(conversations, int(content["training"]["seed"]))["test"]
    segments = tokenise(test, tokenizer)
    alone = not content["encoder"]["batch_independent"]
    halves, small = (
        OnnxModel(bundle / ENCODER, bundle / HEAD, threads=threads, alone=alone, form=form)
        for form in VectorForm
    )
    final = predict(small, segments, FINAL, tokenizer)
    compared = gate.compare(predict(halves, segments, FINAL, tokenizer), final)
    if not compared["passes"]:
        equal = ", ".join(
            f"{name} {100 * head['agreement']:.1f} %" for name, head in compared["heads"].items()
        )
        raise FormError(f"{bundle} stays as it is: the gate does not pass; equal labels: {equal}")
    given = calibration_of(content)
    content["version"] = VERSION
    content["encoder"]["vectors"] = VectorForm.BYTES.value
    content["metrics"] |= {
        "test": measure(final, given),
        "test_provisional": measure(predict(small, segments, PROVISIONAL, tokenizer), given),
        "vectors": compared,
    }
    write_manifest(bundle, content)
    (bundle / CARD).write_text(model_card(content), encoding="utf-8")
    return compared


if __name__ == "__main__":
    typer.run(main)
