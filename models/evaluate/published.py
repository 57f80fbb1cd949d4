"""Published figures that ours are shown beside, in per cent."""

from __future__ import annotations

EPITOME_REDDIT = {
    "emotional_reactions": {
        "accuracy": 79.43,
        "macro_f1": 74.46,
        "token_f1": 53.57,
        "iou_f1": 64.83,
    },
    "interpretations": {
        "accuracy": 84.04,
        "macro_f1": 62.60,
        "token_f1": 57.40,
        "iou_f1": 55.90,
    },
    "explorations": {
        "accuracy": 92.61,
        "macro_f1": 72.58,
        "token_f1": 71.56,
        "iou_f1": 84.48,
    },
}
"""Sharma et al. 2020, Table 5, Reddit, full model (RoBERTa-base, two encoders a mechanism)."""
