"""Inference with ONNX Runtime: bundle → tokeniser → batches → encoder → head → scores.

Start at ``bundle.load`` and ``scorer.OnnxScorer``.
"""

__all__ = [
    "adaptations",
    "bundle",
    "bundle_pointer",
    "calibration",
    "float16_graph",
    "head",
    "head_bundle",
    "intent_files",
    "intent_model",
    "intents",
    "language_detector",
    "placement",
    "probe",
    "provider_choice",
    "providers",
    "rationale",
    "recalibration",
    "routed_bundles",
    "scorer",
    "tokenizer",
]
