"""`python -m research.low_resource`: empathy in counselling without labelled counselling.

Writes research/results/low_resource.json and docs/methods/low-resource.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from models.data import load_for_command
from models.data.corpora import MissingCorpusError, resolve_data_dir
from models.evaluate.metrics import accuracy
from models.model.encoder import encoder_name
from models.pages.document import write_json
from models.pages.report import rounded
from research import results
from research.low_resource import page
from research.low_resource.exchanges import CONTRASTS, CONTROLS, SOURCES
from research.low_resource.measure import curves, everything
from research.low_resource.nli import FrozenInference, Inference, PretrainedInference, snli
from research.sentence_vectors import CORPORA_CACHE, SentenceEncoder

NAME = "low_resource"


def chosen_pairs(positive: str | None, negative: str | None) -> list[tuple[str, str]]:
    """The pair of the options, or all contrasts and controls."""
    if positive is None and negative is None:
        return [*CONTRASTS, *CONTROLS]
    if positive not in SOURCES or negative not in SOURCES or positive == negative:
        known = ", ".join(SOURCES)
        raise SystemExit(f"error: --positive and --negative name two different ones of {known}")
    return [(positive, negative)]


def main(
    positive: Annotated[str | None, typer.Option(help="Corpus called empathic.")] = None,
    negative: Annotated[str | None, typer.Option(help="Corpus called not empathic.")] = None,
    nli: Annotated[
        str | None, typer.Option(help="Folder or hub name of an NLI model; default: the stand-in.")
    ] = None,
    size: Annotated[int, typer.Option(help="Training exchanges of each side.")] = 800,
    snli_rows: Annotated[int, typer.Option(help="Pairs of SNLI for the stand-in.")] = 3000,
    few_shot: Annotated[
        bool,
        typer.Option("--few-shot", help="Measure the few labelled turns alone; keep the others."),
    ] = False,
    encoder: Annotated[
        str | None, typer.Option(help="Folder or hub name of another encoder.")
    ] = None,
    cache: Annotated[Path, typer.Option(help="File with the encoder's vectors.")] = CORPORA_CACHE,
    bf16: Annotated[bool, typer.Option(help="bfloat16 in the encoder.")] = True,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the result files.")] = results.FOLDER,
    pages: Annotated[Path, typer.Option(help="Folder of the page.")] = page.FOLDER,
    threads: int = 1,
) -> None:
    """Contrast classifiers, NLI baselines and the few-shot curve."""
    torch.set_num_threads(threads)
    pairs = chosen_pairs(positive, negative)
    encode = SentenceEncoder(cache, encoder, bf16=bf16)
    conversations = load_for_command(data_dir)
    if few_shot:
        content = results.read(NAME, out)
        if not content:
            raise SystemExit(f"error: {out} has no {NAME}.json: run the command without --few-shot")
        own = curves(conversations, resolve_data_dir(data_dir), encode, pair=pairs[0], size=size)
        finish(content | rounded({"few_shot": own}, 4), out, pages)
        return
    try:
        folder = resolve_data_dir(data_dir)
        about: dict[str, Any] = {"name": nli or "stand-in on SNLI", "accuracy": None}
        if nli is None:
            stand_in = FrozenInference(snli(folder, 0, snli_rows), encode)
            test = snli(folder, 1, snli_rows // 2)
            premises, hypotheses, labels = zip(*test, strict=True)
            about["accuracy"] = accuracy(labels, stand_in.labels(premises, hypotheses))
            inference: Inference = stand_in
        else:
            inference = PretrainedInference(nli)
        content = everything(conversations, folder, encode, inference, pairs=pairs, size=size)
    except (MissingCorpusError, ValueError) as problem:
        raise SystemExit(f"error: {problem}") from problem
    finish(rounded({"encoder": encoder_name(encoder), "nli": about} | content, 4), out, pages)


def finish(content: dict[str, Any], out: Path, pages: Path) -> None:
    """Write the result file and the page."""
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / f"{NAME}.json", content)
    print(page.write(content, pages))


if __name__ == "__main__":
    typer.run(main)
