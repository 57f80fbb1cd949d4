"""`python -m models.evaluate.gold_rationales`: rationales of the shipped bundle, held out.

Over the tenth of EPITOME's responses that the bundle's training left out, by its own graphs and
thresholds. The headline is over the responses in which annotators marked a rationale; two empty
rationales count as correct in the others, which a model without rationales gets, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray

from models.data import epitome
from models.data.corpora import resolve_data_dir
from models.data.split import DESCRIPTION, key_of
from models.evaluate.exported import Measured, measured
from models.evaluate.resampling import interval
from models.fit.perceived import left_out_of
from models.labels import RATIONALE_ORDER
from models.pages import document
from models.pages.report import rationale, rounded
from stream_app.inference.bundles import bundle as bundles

Ints = NDArray[np.int64]
_Masks = tuple[list[NDArray[np.integer]], list[NDArray[np.integer]]]
HEADLINE = ("token_f1_gold", "iou_f1_gold")
LENIENT = ("token_f1", "iou_f1")


def rationale_rows(found: Measured, posts: list[str]) -> dict[str, Any]:
    """Figures by mechanism with intervals; `posts` names each response's seeker post.

    Responses to one seeker post are resampled together.
    """
    rows = {}
    for head in RATIONALE_ORDER:
        responses = found.predictions.rationales[head]
        outputs = found.predictions.heads[head]
        calibration = found.calibration
        levels = calibration.labels(head, calibration.probabilities(head, outputs.logits))
        gold = [item.gold for item in responses]
        masks = gold, calibration.masks(head, responses, levels)
        group = np.unique([posts[item.row] for item in responses], return_inverse=True)[1]
        every = np.arange(len(gold))
        marked = every[[bool(item.any()) for item in gold]]
        rows[head] = {
            "responses": len(every),
            "with_gold": len(marked),
            **{name: _interval(name, masks, group, marked) for name in HEADLINE},
            **{name: _interval(name, masks, group, every) for name in LENIENT},
            "always_empty": 1.0 - len(marked) / len(every),
        }
    return rows


def _interval(name: str, masks: _Masks, group: Ints, kept: Ints) -> dict[str, Any]:
    return interval(group[kept], lambda drawn: _figure(name, masks, kept[drawn]))


def _figure(name: str, masks: _Masks, rows: Ints) -> float:
    gold, given = masks
    return float(rationale([gold[row] for row in rows], [given[row] for row in rows])[name])


def main(
    bundle: Annotated[Path, typer.Option(help="Name of a shipped bundle, or a folder.")] = Path(
        "default"
    ),
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[Path, typer.Option(help="The evaluation's folder.")] = document.FOLDER,
) -> None:
    """Measure the rationales of a bundle and write gold_rationales.json."""
    torch.set_num_threads(1)
    shipped = bundles.load(bundles.find(bundle))
    training = shipped.manifest.training
    if training.get("split") != DESCRIPTION:
        raise SystemExit(f"error: {bundle} left out no tenth of the corpora in training")
    pairs = left_out_of(list(epitome.load(resolve_data_dir(data_dir))), training)
    rows = rationale_rows(measured(shipped, pairs), [key_of(item) for item in pairs])
    content = rounded({"bundle": shipped.manifest.bundle_id, "rows": rows})
    out.mkdir(parents=True, exist_ok=True)
    document.write_json(out / "gold_rationales.json", content)
    print(document.section(document.read_all(out), "gold_rationales"))
    print(f"written to {out / 'gold_rationales.json'} and {document.write(out)}")


if __name__ == "__main__":
    typer.run(main)
