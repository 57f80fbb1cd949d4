"""Predictions and figures of an exported bundle, by its own graphs and calibration."""

from __future__ import annotations

from dataclasses import dataclass

from models.data.corpora import Conversation
from models.evaluate.predict import Predictions, predict
from models.fit.calibrate import Calibration
from models.model.batches import FINAL, Segment, Window, tokenise
from models.model.encoder import load_tokenizer
from models.model.onnx_model import OnnxModel
from models.pages.report import Metrics, measure
from stream_app.inference.bundles.bundle import Bundle, Manifest


@dataclass(frozen=True)
class Measured:
    """One bundle's predictions and metrics on the held-out turns."""

    predictions: Predictions
    metrics: Metrics
    calibration: Calibration


def calibration_of(manifest: Manifest) -> Calibration:
    """Convert the manifest's calibration to the training code's type."""
    heads = manifest.heads
    return Calibration(
        temperatures={head.name: head.temperature for head in heads},
        biases={head.name: head.bias for head in heads if head.bias},
        offsets={head.name: head.offsets for head in heads if head.offsets},
        thresholds={head.name: head.rationale.threshold for head in heads if head.rationale},
        abstain_below={head.name: head.abstain_below for head in heads},
    )


def measured(
    bundle: Bundle, test: list[Conversation], window: Window = FINAL, threads: int = 1
) -> Measured:
    """Run the bundle's graphs on the test part."""
    manifest = bundle.manifest
    tokenizer = load_tokenizer(bundle.file(manifest.tokenizer.file))
    segments: list[Segment] = tokenise(test, tokenizer)
    model = OnnxModel(
        bundle.file(manifest.encoder.file),
        bundle.file(manifest.head.file),
        threads=threads,
        alone=not manifest.encoder.batch_independent,
    )
    calibration = calibration_of(manifest)
    predictions = predict(model, segments, window, tokenizer)
    return Measured(predictions, measure(predictions, calibration), calibration)
