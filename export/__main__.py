"""`python -m export --model build/model --out FOLDER --profile int8`: build a bundle.

Both the graph for CPUs and what CUDA sessions make of it, in float16, are compared with `fp32`.
"""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from tokenizers import Tokenizer

from export import gate
from export.int8_products import static_int8, tokens_int8
from export.onnx_graphs import export_graphs
from export.parity import ParityError, check_parity
from export.quantize import dynamic_int8, half_weights, weights_int8
from models import bundle
from models.card import encoders, model_card
from models.data import Conversation, load_for_command
from models.evaluate.predict import Predictions, predict
from models.fit.calibrate import Calibration
from models.fit.perceived import left_out_of
from models.model import multitask
from models.model.batches import FINAL, PROVISIONAL, Segment, Window, tokenise
from models.model.onnx_model import OnnxModel
from models.pages.report import markdown, measure
from stream_app.inference.devices import float16_graph

Versions = Mapping[str, tuple[Callable[[Path, Path], None], bool]]
"""By name: the writer of an encoder version, and whether a turn's result is batch-independent."""
EXAMPLES = 400
"""Turns for calibrating a quantiser's activation ranges."""


class Profile(StrEnum):
    """Numeric format of the encoder's weights on CPUs."""

    fp32 = "fp32"
    int8 = "int8"


class GateError(RuntimeError):
    """No quantised encoder is close enough to float32."""


def main(
    model: Annotated[Path, typer.Option(help="A trained model's folder.")] = Path("build/model"),
    out: Annotated[Path, typer.Option(help="Folder of the bundle.")] = Path("build/bundle"),
    profile: Annotated[Profile, typer.Option(help="fp32 or int8")] = Profile.int8,
    name: Annotated[
        str, typer.Option(help="Name of the bundle, as reported in scores.")
    ] = bundle.NAME,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    threads: int = 2,
) -> None:
    """Export a trained model, verify it, evaluate it on the test split and write the bundle."""
    for noisy in (None, "torch.onnx", "onnxruntime.quantization.matmul_nbits_quantizer"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    torch.set_num_threads(threads)
    training = json.loads((model / "training.json").read_text(encoding="utf-8"))
    conversations = load_for_command(data_dir)
    test = left_out_of(conversations, training)
    left_out = {id(item) for item in test}
    learnt = [item for item in conversations if id(item) not in left_out]
    try:
        content = build(model, out, profile, test, learnt, threads, name)
    except (GateError, ParityError) as problem:
        raise SystemExit(f"error: {problem}") from problem
    size = sum(path.stat().st_size for path in out.iterdir())
    print(f"bundle {content['name']} {content['version']} written to {out}: {size / 1e6:.1f} MB")


def build(
    model: Path,
    out: Path,
    profile: Profile,
    test: list[Conversation],
    learnt: list[Conversation],
    threads: int = 2,
    name: str = bundle.NAME,
) -> dict[str, Any]:
    """Write the bundle folder and return its manifest; GateError if no encoder passes the gate.

    `learnt` are conversations of the training part, which a quantiser may use.
    """
    trained, tokenizer = multitask.load(model)
    calibration = Calibration.read(model / "calibration.json")
    segments = tokenise(test, tokenizer)
    with tempfile.TemporaryDirectory() as scratch:
        encoder, packed, head = export_graphs(trained, Path(scratch))
        int8 = profile is Profile.int8
        source = packed if int8 else encoder
        metrics: dict[str, Any] = {"parity": check_parity(trained, source, head)}
        print(f"parity: {metrics['parity']}", flush=True)
        held_out = HeldOut(segments, tokenizer, threads)
        chosen = reference = held_out.candidate("fp32", encoder, head, batch_independent=True)
        if int8:
            small = head.with_name("head_half.onnx")
            half_weights(head, small)
            head = small
            versions = int8_versions(examples(learnt, tokenizer))
            chosen, metrics["quantisation"] = quantised(reference, source, head, held_out, versions)
        metrics["accelerator"] = accelerated(reference, chosen, head, held_out)
        provisional = held_out.predict(chosen, head, PROVISIONAL)
        metrics["test"] = measure(chosen.predictions, calibration)
        metrics["test_provisional"] = measure(provisional, calibration)
        print(markdown(metrics["test"]), flush=True)
        out.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(chosen.encoder, out / bundle.ENCODER)
        shutil.copyfile(head, out / bundle.HEAD)
    tokenizer.save(str(out / bundle.TOKENIZER), pretty=False)
    content = bundle.manifest(
        out,
        profile=profile.value,
        hidden_size=trained.config.hidden_size,
        batch_independent=chosen.batch_independent,
        packed=int8,
        calibration=calibration,
        training={
            **json.loads((model / "training.json").read_text(encoding="utf-8")),
            "parameters": sum(weights.numel() for weights in trained.parameters()),
        },
        metrics=metrics,
        name=name,
    )
    bundle.write_manifest(out, content)
    (out / bundle.CARD).write_text(model_card(content), encoding="utf-8")
    return content


@dataclass(frozen=True)
class HeldOut:
    """The turns for comparing encoders."""

    segments: list[Segment]
    tokenizer: Tokenizer
    threads: int

    def candidate(
        self, name: str, encoder: Path, head: Path, *, batch_independent: bool
    ) -> gate.Candidate:
        """Wrap an encoder graph with its predictions; its scorer for timing has one thread."""
        scorer = OnnxModel(encoder, head, threads=1, alone=not batch_independent)
        empty = gate.Candidate(name, encoder, batch_independent, scorer, Predictions({}))
        return replace(empty, predictions=self.predict(empty, head, FINAL))

    def predict(self, candidate: gate.Candidate, head: Path, window: Window) -> Predictions:
        """Predict with all threads."""
        alone = not candidate.batch_independent
        scorer = OnnxModel(candidate.encoder, head, threads=self.threads, alone=alone)
        return predict(scorer, self.segments, window, self.tokenizer)


def examples(conversations: list[Conversation], tokenizer: Tokenizer) -> list[list[int]]:
    """Token ids of turns spread over the conversations."""
    turns = [turn for segment in tokenise(conversations, tokenizer) for turn in segment.turns]
    return [list(turn.ids) for turn in turns[:: max(1, len(turns) // EXAMPLES)]]


def int8_versions(shown: list[list[int]]) -> Versions:
    """The available quantisers; `shown` are the examples of `static_int8`."""
    return {
        "dynamic_int8": (dynamic_int8, False),
        "weights_int8": (weights_int8, True),
        "tokens_int8": (partial(tokens_int8, examples=shown), True),
        "static_int8": (partial(static_int8, examples=shown), True),
    }


def quantised(
    reference: gate.Candidate, source: Path, head: Path, held_out: HeldOut, versions: Versions
) -> tuple[gate.Candidate, dict[str, Any]]:
    """The fastest version of `source` that passes the gate, and every candidate's figures."""
    candidates = [reference]
    for name, (write, independent) in versions.items():
        path = reference.encoder.with_name(f"{name}.onnx")
        write(source, path)
        candidates.append(held_out.candidate(name, path, head, batch_independent=independent))
    figures = gate.report(candidates, held_out.segments)
    print(encoders(figures), flush=True)
    chosen = gate.fastest_passing(figures)
    if chosen is None:
        message = "no smaller encoder passes the gate (figures above): use --profile fp32"
        raise GateError(message)
    figures["chosen"] = chosen
    return next(item for item in candidates if item.name == chosen), figures


def accelerated(
    reference: gate.Candidate, chosen: gate.Candidate, head: Path, held_out: HeldOut
) -> dict[str, Any] | None:
    """Compare what CUDA sessions make of the chosen encoder with float32.

    None if they can make nothing of it: then the bundle runs on CPUs only.
    """
    path = reference.encoder.with_name("float16.onnx")
    try:
        path.write_bytes(float16_graph.encoder(chosen.encoder))
    except float16_graph.UnknownGraphError as problem:
        print(f"the bundle runs on CPUs only: {problem}", flush=True)
        return None
    candidate = held_out.candidate("float16", path, head, batch_independent=True)
    figures = gate.compare(reference.predictions, candidate.predictions)
    print(f"on accelerators: {figures}", flush=True)
    if not figures["passes"]:
        message = "in float16, as on accelerators, the encoder does not pass the gate"
        raise GateError(message)
    return figures


if __name__ == "__main__":
    typer.run(main)
