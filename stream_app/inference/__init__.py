"""Inference with ONNX Runtime: bundle → tokeniser → batches → encoder → head → scores.

Start at ``bundle.load`` and ``scorer.OnnxScorer``.
"""

__all__ = [
    "bundle",
    "head_bundle",
    "probe",
    "provider_choice",
    "providers",
    "rationale",
    "routed_bundles",
    "scorer",
    "tokenizer",
]
