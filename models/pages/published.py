"""Published figures and the project's targets, all in per cent."""

from __future__ import annotations

from dataclasses import dataclass

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
"""Sharma et al. 2020, Tables 3-5, Reddit, full model (RoBERTa-base, two encoders a mechanism)."""

EPITOME_TABLE_5 = {
    "bi_encoder": (79.43, 74.46, 53.57, 64.83, 84.04, 62.60, 57.40, 55.90, 92.61, 72.58, 71.56, 84.48),
    "no_attention": (75.51, 52.66, 51.79, 59.83, 83.26, 62.25, 54.90, 52.79, 91.98, 64.75, 68.81, 81.91),
    "no_seeker": (79.15, 71.47, 45.87, 58.56, 83.57, 62.41, 55.59, 55.51, 91.67, 64.59, 68.73, 81.56),
    "no_rationales": (78.50, 73.21, None, None, 83.26, 62.13, None, None, 91.51, 64.44, None, None),
    "no_pretraining": (76.97, 69.03, 51.58, 57.35, 82.32, 61.38, 57.61, 55.34, 91.99, 65.26, 70.44, 81.71),
}  # fmt: skip
"""Sharma et al. 2020, Table 5, Reddit: accuracy, macro-F1, token F1 and IOU-F1 of ER, IP, EX."""

MICROMODELS = {
    "emotional_reactions": {
        "accuracy": 88.26,
        "macro_f1": 59.52,
        "token_f1": 70.30,
        "iou_f1": 69.13,
    },
    "interpretations": {
        "accuracy": 92.71,
        "macro_f1": 62.73,
        "token_f1": 54.94,
        "iou_f1": 54.08,
    },
    "explorations": {
        "accuracy": 95.27,
        "macro_f1": 61.47,
        "token_f1": 86.92,
        "iou_f1": 86.64,
    },
}
"""Lee et al. 2023, Table 1."""

MAJORITY = {
    "emotional_reactions": {"token_f1": 66.98, "iou_f1": 66.98},
    "interpretations": {"token_f1": 54.94, "iou_f1": 54.94},
    "explorations": {"token_f1": 84.53, "iou_f1": 84.53},
}
"""Lee et al. 2023, Table 1: a baseline that never predicts a rationale."""

FLAN_T5_XL_EMH = {
    "emotional_reactions": {"accuracy": 85.3, "macro_f1": 82.5},
    "interpretations": {"accuracy": 86.4, "macro_f1": 66.2},
    "explorations": {"accuracy": 94.9, "macro_f1": 82.3},
}
"""Xu & Jiang 2024, Table 15, Flan-T5-xl (3 B)."""

EPITOME_BY_XU = {
    "emotional_reactions": {"accuracy": 79.4, "macro_f1": 75.8},
    "interpretations": {"accuracy": 83.4, "macro_f1": 56.7},
    "explorations": {"accuracy": 94.5, "macro_f1": 81.8},
}
"""Xu & Jiang 2024, Table 15: Sharma et al.'s model, as reproduced by them."""

ESCONV_MEAN = {
    "Sharma et al. (125 M)": {"precision": 83.2, "recall": 68.1, "f1": 70.7, "accuracy": 90.9},
    "Welivita et al. (125 M)": {"precision": 80.2, "recall": 72.9, "f1": 74.6, "accuracy": 90.8},
    "Li et al. (355 M)": {"precision": 78.8, "recall": 72.1, "f1": 74.4, "accuracy": 90.8},
    "BERT-large (340 M)": {"precision": 75.5, "recall": 71.7, "f1": 73.1, "accuracy": 90.8},
    "Flan-T5-large (770 M)": {"precision": 76.8, "recall": 74.8, "f1": 75.3, "accuracy": 91.2},
    "Flan-T5-xl (3 B)": {"precision": 78.6, "recall": 73.5, "f1": 75.1, "accuracy": 91.6},
}
"""Xu & Jiang 2024, Table 4: means over the seven ESConv tasks."""

ESCONV_TASKS = {
    "question": (86.1, 88.8, 87.4, 91.2),
    "restatement_or_paraphrasing": (84.6, 70.9, 75.8, 95.6),
    "reflection_of_feelings": (68.8, 64.8, 66.5, 92.0),
    "self_disclosure": (82.4, 86.0, 84.0, 94.3),
    "affirmation_and_reassurance": (72.1, 72.8, 72.4, 85.0),
    "providing_suggestions": (75.7, 78.6, 77.0, 86.9),
    "information": (67.7, 61.4, 63.7, 93.6),
}
"""Xu & Jiang 2024, Tables 16 and 17, Flan-T5-large: macro precision, recall, F1, accuracy."""

XU_JIANG_LOSSES = {
    "cross-entropy": (80.5, 75.8, 77.2, 92.1),
    "LDAM": (79.8, 76.8, 77.5, 92.3),
    "focal": (79.5, 77.3, 78.0, 92.1),
}
XU_JIANG_CONTEXT = {
    "focal, without following turns": (79.2, 74.8, 75.6, 91.6),
    "focal, with following turns": (79.5, 77.3, 78.0, 92.1),
}
XU_JIANG_SIZES = {
    "Flan-T5-small (60 M)": (68.7, 66.5, 66.4, 91.1),
    "Flan-T5-base (220 M)": (78.1, 74.5, 75.7, 91.8),
    "Flan-T5-large (770 M)": (79.5, 77.3, 78.0, 92.1),
    "Flan-T5-xl (3 B)": (80.0, 76.5, 77.5, 91.7),
}
XU_JIANG_INSTRUCTIONS = {
    "without instructions": (76.1, 71.3, 72.4, 91.1),
    "with instructions": (79.5, 77.3, 78.0, 92.1),
}
"""Xu & Jiang 2024, Tables 5 to 8: macro precision, recall, F1, accuracy on their own corpus."""

M3TCM = {
    "M3TCM, text and speech": {"behaviour": 83.0, "talk_type": 66.0},
    "best earlier result, as its authors state it": {"behaviour": 72.0, "talk_type": 55.0},
}
"""Hossain, Alexandersson & Müller 2024 (LREC-COLING): F1 of AnnoMI's therapist and client turns.

Taken from the paper's abstract (relative gains of 15 % and 20 %) and from a public summary of it
(the figures); how F1 is averaged and how sessions are split was not verified.
"""

MEASURES = ("precision", "recall", "f1", "accuracy")


@dataclass(frozen=True)
class Target:
    """One row of the top table.

    `path` leads to the figure in the JSON files: the file's name, then keys; shares are compared in
    per cent unless `unit` is 1. With `most` the target is an upper bound. `wanted` is None for a
    figure without a target.
    """

    what: str
    path: tuple[str, ...]
    wanted: float | None
    published: str = "–"
    most: bool = False
    unit: float = 100.0


_SHORT = {"emotional_reactions": "ER", "interpretations": "IP", "explorations": "EX"}
_LEVEL_TARGETS = {"accuracy": (80, 85, 93), "macro_f1": (75, 64, 73)}
_RATIONALE_TARGETS = {"token_f1": (72, 60, 88), "iou_f1": (70, 60, 87)}
_WORDS = {
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "token_f1": "token F1",
    "iou_f1": "IOU-F1",
}


def _epitome_targets() -> list[Target]:
    rows = []
    for metric, wanted in _LEVEL_TARGETS.items():
        for name, value in zip(_SHORT, wanted, strict=True):
            published = f"EPITOME {EPITOME_REDDIT[name][metric]:.1f}"
            if metric == "macro_f1":
                published += f"; Flan-T5-xl {FLAN_T5_XL_EMH[name][metric]:.1f}"
            path = ("levels", "views", "final", "shipped", name, metric, "mean")
            what = f"EPITOME level {_SHORT[name]}, {_WORDS[metric]}"
            rows.append(Target(what, path, value, published))
    for metric, wanted in _RATIONALE_TARGETS.items():
        for name, value in zip(_SHORT, wanted, strict=True):
            what = f"rationale {_SHORT[name]}, {_WORDS[metric]}"
            place, gold = ("rationales", "rows", name), ("gold_rationales", "rows", name)
            rows.append(
                Target(f"{what}, gold rationales", (*gold, f"{metric}_gold", "value"), None)
            )
            published = f"micromodels {MICROMODELS[name][metric]:.1f}"
            lenient = f"{what}, two empty masks count as correct"
            rows.append(Target(lenient, (*place, metric, "mean"), value, published))
    return rows


_STRATEGY_MEAN = ("strategies", "views", "final", "shipped", "mean")

TARGETS: tuple[Target, ...] = (
    *_epitome_targets(),
    Target(
        "ESConv 7 strategies, macro-F1", (*_STRATEGY_MEAN, "f1", "mean"), 75.3, "Flan-T5-large 75.3"
    ),
    Target(
        "ESConv 7 strategies, accuracy",
        (*_STRATEGY_MEAN, "accuracy", "mean"),
        91.2,
        "Flan-T5-large 91.2",
    ),
    *(
        Target(
            f"outcome {name}, AUROC at the end{held}",
            ("outcomes", "outcomes", name, "auroc", "value"),
            wanted,
            "–",
            unit=1,
        )
        for name, wanted, held in (
            ("chat_failed", 0.83, ""),
            ("low_satisfaction", 0.71, ""),
            ("low_mi_quality", 0.93, ", topics held out"),
        )
    ),
    *(
        Target(
            f"context probe, share fooled, {scorer}",
            ("probes", "scorers", scorer, "fooled", "share"),
            20,
            "EPITOME 44–99 (phrases in unrelated dialogues)",
            most=True,
        )
        for scorer in ("ours",)
    ),
    Target("largest ECE of a head, calibrated", ("calibration", "largest_ece"), 5, "–", most=True),
)
"""This project's own targets, set before training."""
