"""Processor time of a reading by graph: `python -m models.reader.evaluation.speed GRAPH...`.

One thread of ONNX Runtime, real answers with the turns before them, one at a time. A reading is
measured in processor time, so that other processes on the machine matter little.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from models.data.corpora import resolve_data_dir
from models.model.onnx_model import session
from models.reader import corpora
from models.reader.train import Read, tokenised

EXAMPLES = 200
CORPORA = ("ieval", "esconv_feedback", "rated_human")


def milliseconds(graph: Path, reads: list[Read]) -> float:
    """Median processor time of a reading, in ms."""
    reader = session(graph)
    found = []
    for read in reads:
        ids = np.array([read.ids], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        began = time.process_time()
        reader.run(None, feed)
        found.append(time.process_time() - began)
    return 1000.0 * float(np.median(found))


def main(
    graphs: Annotated[list[Path], typer.Argument(help="Graphs of `export.reader`.")],
    encoder: Annotated[str, typer.Option(help="Folder of a pretrained encoder, for its tokens.")],
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[Path, typer.Option(help="JSON file to write.")] = Path(
        "docs/evaluation/reader/speed.json"
    ),
) -> None:
    """Print size and processor time of every graph, and write them."""
    examples = [
        example
        for example in corpora.load(resolve_data_dir(data_dir))
        if example.corpus in CORPORA and example.turns
    ]
    reads = tokenised(examples[:: len(examples) // EXAMPLES], encoder)
    found = {
        graph.stem: {
            "megabytes": round(graph.stat().st_size / 1e6, 1),
            "tokens": float(np.mean([len(read.ids) for read in reads])),
            "milliseconds": round(milliseconds(graph, reads), 1),
        }
        for graph in graphs
    }
    out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    typer.run(main)
