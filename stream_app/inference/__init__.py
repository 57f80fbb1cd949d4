"""Inference with ONNX Runtime: bundle → tokeniser → batches → encoder → head → scores.

Start at ``scorer.OnnxScorer``. ``bundles`` has a bundle's folder,
``devices`` the processors that its sessions run on.
"""

__all__ = [
    "bundles",
    "devices",
    "head",
    "head_bundle",
    "intent_files",
    "intent_model",
    "intents",
    "language_detector",
    "rationale",
    "routed_bundles",
    "scorer",
    "tokenizer",
]
