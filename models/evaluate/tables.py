"""Markdown tables from the evaluation's JSON, the papers' figures beside ours; per cent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from models.evaluate.folds import VIEW_WORDS
from models.evaluate.published import (
    EPITOME_BY_XU,
    EPITOME_REDDIT,
    ESCONV_MEAN,
    ESCONV_TASKS,
    FLAN_T5_XL_EMH,
    MAJORITY,
    MEASURES,
    MICROMODELS,
)

Table = dict[str, Any]
NONE = "–"
DECISIONS = {"shipped": "shipped decision", "argmax": "most probable"}


def table(header: Iterable[str], rows: Iterable[Iterable[str]], left: int = 1) -> str:
    """A Markdown table; the first `left` columns are text, the others figures."""
    names = list(header)
    marks = ["---" if column < left else "---:" for column in range(len(names))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [names, marks, *map(list, rows)])


def percent(value: float | None, digits: int = 1) -> str:
    """A share in per cent.

    >>> percent(0.7531), percent(None)
    ('75.3', '–')
    """
    return NONE if value is None else f"{100 * value:.{digits}f}"


def spread(figure: dict[str, Any] | None) -> str:
    """Mean and standard deviation over folds, in per cent.

    >>> spread({"mean": 0.8, "sd": 0.0123, "folds": [0.79, 0.81]})
    '80.0 ± 1.2'
    """
    if figure is None:
        return NONE
    mean = percent(figure["mean"])
    return f"{mean} ± {percent(figure['sd'])}" if len(figure["folds"]) > 1 else mean


def folds_line(content: Table) -> str:
    """Which folds a table is from."""
    trained, planned = len(content["folds"]), content["of"]
    numbers = ", ".join(map(str, content["folds"]))
    if trained == planned:
        return f"Mean ± standard deviation over {planned} folds."
    return (
        f"**{trained} of {planned} folds** (number {numbers}); the others are not trained yet. "
        "Mean ± standard deviation over those."
    )


def levels(content: Table) -> str:
    """EPITOME levels."""
    keys = ("accuracy", "macro_f1", "mcc")
    header = ["mechanism", "view", "source", "n", "majority", "accuracy", "macro-F1", "MCC"]
    rows: list[list[str]] = []
    for name in EPITOME_REDDIT:
        for view, decisions in content["views"].items():
            own = decisions["shipped"][name]
            rows.append(
                [
                    *(name, VIEW_WORDS[view], "ours", str(own["n"])),
                    percent(own["majority"]["mean"]),
                    *(spread(own[key]) for key in keys),
                ]
            )
        for words, source in (
            ("EPITOME [1]", EPITOME_REDDIT),
            ("the same, run by Xu & Jiang [2]", EPITOME_BY_XU),
            ("Flan-T5-xl, 3 B [2]", FLAN_T5_XL_EMH),
            ("micromodels [3]", MICROMODELS),
        ):
            published = source[name]
            figures = [f"{published['accuracy']:.1f}", f"{published['macro_f1']:.1f}", NONE]
            rows.append([name, "published", words, NONE, NONE, *figures])
    return table(header, rows, left=3)


LEVEL_NOTES = """\
[1] Sharma et al. 2020, Table 3 (3,084 pairs; 75:5:20, split not published). [2] Xu & Jiang 2024,
Table 15 (3,072 pairs, five folds). [3] Lee et al. 2023, Table 1: micromodels see no context, and
their accuracy beside a macro-F1 so low is not counted as ours is, so it is **not comparable**.
Ours: the {pairs:,} pairs that are available here, folds by seeker post, so that the published
columns show the order of magnitude and no more."""


def rationales(content: Table) -> str:
    """EPITOME rationales."""
    keys = ("token_f1", "iou_f1", "token_f1_pooled", "token_macro_f1")
    header = ["mechanism", "source", "n", "token F1", "IOU-F1", "pooled token F1", "token macro-F1"]
    rows: list[list[str]] = []
    for name, own in content["rows"].items():
        empty = percent(own["always_empty"]["mean"])
        rows.append([name, "ours", str(own["n"]), *(spread(own[key]) for key in keys)])
        rows.append([name, "always empty, on ours", str(own["n"]), empty, empty, NONE, NONE])
        for words, source in (
            ("EPITOME [1]", EPITOME_REDDIT),
            ("micromodels [2]", MICROMODELS),
            ("always empty [2]", MAJORITY),
        ):
            published = [f"{source[name][key]:.1f}" for key in ("token_f1", "iou_f1")]
            rows.append([name, words, NONE, *published, NONE, NONE])
    return table(header, rows, left=2)


RATIONALE_NOTES = """\
[1] Sharma et al. 2020, Table 4. [2] Lee et al. 2023, Table 1, ten random 75:5:20 splits; rationales
are whole sentences there. Token F1 and IOU-F1 are means over responses in which two empty
rationales agree: in Lee et al.'s table "always empty" has the same token F1 as IOU-F1, which only
this count gives. The pooled columns take the tokens of all responses together, without that
credit; nobody publishes them. Tokens are word pieces of our encoder, of the whole response: what
lies beyond the encoder's length counts as missed. Corpus and folds as above."""


def strategies(content: Table) -> str:
    """ESConv: the mean over the seven tasks, then every task, then the eight classes."""
    header = ["model", "macro precision", "macro recall", "macro-F1", "accuracy", "MCC"]
    rows: list[list[str]] = []
    for view, decisions in content["views"].items():
        for decision, words in DECISIONS.items():
            mean = decisions[decision]["mean"]
            cells = [spread(mean[key]) for key in (*MEASURES, "mcc")]
            rows.append([f"ours, {VIEW_WORDS[view]}, {words}", *cells])
    mean = content["views"]["final"]["with_failed"]["mean"]
    rows.append(["ours, failed chats too", *(spread(mean[key]) for key in (*MEASURES, "mcc"))])
    for words, figures in ESCONV_MEAN.items():
        rows.append([f"{words} [1]", *(f"{figures[key]:.1f}" for key in MEASURES), NONE])
    means = table(header, rows)
    rows = []
    for task, published in ESCONV_TASKS.items():
        own = content["views"]["final"]["shipped"]["tasks"][task]
        rows.append([task, "ours", *(spread(own[key]) for key in (*MEASURES, "mcc"))])
        rows.append([task, "Flan-T5-large [2]", *(f"{value:.1f}" for value in published), NONE])
    tasks = table(["strategy", "model", *header[1:]], rows, left=2)
    rows = []
    for view, decisions in content["views"].items():
        for decision, own in decisions["classes"].items():
            rows.append(
                [
                    *(VIEW_WORDS[view], DECISIONS[decision], str(own["n"])),
                    percent(own["majority"]["mean"]),
                    *(spread(own[key]) for key in ("accuracy", "macro_f1", "mcc")),
                ]
            )
    names = ["view", "decision", "n", "majority", "accuracy", "macro-F1", "MCC"]
    classes = table(names, rows, left=2)
    return f'{means}\n\n{tasks}\n\nThe eight classes, "others" among them:\n\n{classes}'


STRATEGY_NOTES = """\
[1] Xu & Jiang 2024, Table 4. [2] The same, Tables 16 and 17. Seven yes-or-no tasks; each row is the
mean over its classes yes and no, the first table the mean over the tasks. Their models are trained
once for each task on 1,300 dialogues, five folds; ours is one model for all tasks, on the {turns:,}
supporter turns that are available here, folds by dialogue. Chats that ESConv's publishers count as
failed train ours but are tested in the row that says so and in the eight classes alone: the papers'
corpus has none. "Shipped" takes a threshold for each strategy, "most probable" the strategy with
the largest logit."""


def classes(content: Table) -> str:
    """Heads of plain classes by view."""
    rows = []
    for view, decisions in content["views"].items():
        for head, own in decisions["shipped"].items():
            argmax = decisions["argmax"][head]
            rows.append(
                [
                    *(head, VIEW_WORDS[view], str(own["n"]), percent(own["majority"]["mean"])),
                    *(spread(own[key]) for key in ("accuracy", "macro_f1", "mcc")),
                    spread(argmax["macro_f1"]),
                    percent(own["macro_f1"]["pooled"]),
                ]
            )
    rows.sort(key=lambda row: list(decisions["shipped"]).index(row[0]))
    header = [
        *("head", "view", "n", "majority", "accuracy", "macro-F1", "MCC"),
        *("macro-F1 before calibration", "macro-F1, all folds' items together"),
    ]
    return table(header, rows, left=2)


ANNOMI_NOTES = """\
Nobody publishes comparable figures. "No context" is the same model with every neighbour hidden.
Wu et al. 2021 measure utterance empathy in motivational interviewing with the Matthews correlation
and reach 0.17 without training on it; their labels are not in AnnoMI, so only the measure is
theirs. Folds hold whole conversations: few in each, so they differ much."""

INTENT_NOTES = """\
Tested on the lines that people labelled, which no model saw; learned from lines that key phrases
found (Welivita & Pu 2020), so the label shares differ between the two. Lines carry no context."""


def calibration(content: Table) -> str:
    """Calibration error and abstention by head."""
    rows = []
    for head, own in content["rows"].items():
        abstain = own["abstain"]
        rows.append(
            [
                *(head, str(own["n"])),
                *(percent(own[key]) for key in ("ece_before", "ece_after", "noise", "noise_95")),
                *(percent(own[f"ece_{when}_provisional"]) for when in ("before", "after")),
                *(f"{own[f'log_loss_{when}']:.3f}" for when in ("before", "after")),
                percent(abstain["coverage"]),
                percent(abstain["accuracy"]),
                percent(own["risk_coverage"][0]["accuracy"]),
            ]
        )
    header = [
        *("head", "n", "ECE before", "ECE after", "noise: mean", "noise: 95 %"),
        *("provisional before", "provisional after", "log loss before", "after"),
        *("answered", "right of these", "right of all"),
    ]
    return table(header, rows)


CALIBRATION_NOTES = """\
Expected calibration error with {bins} bins on all out-of-fold predictions (final view; then the
provisional one). "Noise" is the error that a perfectly calibrated model would show at this n, mean
and 95th percentile over simulated labels. Calibration is a temperature and a bias for each head,
fitted for each fold on the others. A head abstains below the lowest confidence at which {right} %
of the answered turns were right on the other folds, but on {most} % of the turns at most; the last
columns say what that gave on the fold itself."""


def coverage(content: Table) -> str:
    """Accuracy of the most confident share of the turns."""
    rows = [
        [head, *(percent(point["accuracy"]) for point in own["risk_coverage"])]
        for head, own in content["rows"].items()
    ]
    first = next(iter(content["rows"].values()))["risk_coverage"]
    return table(
        ["right among the most confident …", *(f"{point['coverage']:.0%}" for point in first)], rows
    )


def everything(results: dict[str, Table]) -> str:
    """All tables one after the other, for the terminal."""
    makers = {
        "levels": levels,
        "rationales": rationales,
        "strategies": strategies,
        "annomi": classes,
        "intents": classes,
        "calibration": calibration,
    }
    return "\n\n".join(f"## {name}\n\n{make(results[name])}" for name, make in makers.items())
