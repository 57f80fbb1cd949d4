"""Markdown tables from the evaluation's JSON, with the papers' figures; per cent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from textwrap import fill
from typing import Any

from models.evaluate.folds import VIEW_WORDS
from models.pages.published import (
    EPITOME_BY_XU,
    EPITOME_REDDIT,
    ESCONV_MEAN,
    ESCONV_TASKS,
    FLAN_T5_XL_EMH,
    M3TCM,
    MAJORITY,
    MEASURES,
    MICROMODELS,
)
from stream_app.core.measures.heads import LEVELS

Table = dict[str, Any]
Files = dict[str, Any]
"""All the evaluation's files by name: a table may take its baselines from another file."""
NONE = "–"
DECISIONS = {"shipped": "shipped decision", "argmax": "most probable"}


def table(header: Iterable[str], rows: Iterable[Iterable[str]], left: int = 1) -> str:
    """Format a Markdown table; the first `left` columns are text, the others figures."""
    names = list(header)
    marks = ["---" if column < left else "---:" for column in range(len(names))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [names, marks, *map(list, rows)])


def with_tables(document: str, tables: dict[str, str]) -> str:
    r"""The document with the tables between their markers.

    >>> with_tables("<!-- a -->\nold\n<!-- /a -->", {"a": "new"})
    '<!-- a -->\nnew\n<!-- /a -->'
    """
    for name, content in tables.items():
        pattern = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
        found = pattern.search(document)
        if found is None:
            raise ValueError(f"the document has no place for {name}")
        document = f"{document[: found.start()]}{content}\n{document[found.end() :]}"
    return document


def percent(value: float | None, digits: int = 1) -> str:
    """Format a share in per cent.

    >>> percent(0.7531), percent(None)
    ('75.3', '–')
    """
    return NONE if value is None else f"{100 * value:.{digits}f}"


def spread(figure: dict[str, Any] | None) -> str:
    """Format mean and standard deviation over folds in per cent.

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


BASELINES = {"majority": "commonest label", "words": "tf-idf + logistic regression"}


def baseline(files: Files, head: str) -> dict[str, Table]:
    """The baselines of one head by their names in the tables; empty if not measured."""
    rows = files.get("baselines", {}).get("heads", {}).get(head, {})
    return {words: rows[name] for name, words in BASELINES.items() if name in rows}


def micromodels(files: Files, name: str) -> Table | None:
    """Our figures of the micromodels for a mechanism."""
    found: Table | None = files.get("micromodels", {}).get("micromodels", {}).get(name)
    return found


def mean_sd(figure: dict[str, float]) -> str:
    """Format mean and standard deviation in per cent.

    >>> mean_sd({"mean": 0.5, "sd": 0.01})
    '50.0 ± 1.0'
    """
    return f"{percent(figure['mean'])} ± {percent(figure['sd'])}"


def _by_level(own: Table) -> str:
    """F1 of the three levels."""
    keys = [f"f1_{level}" for level in LEVELS]
    return " / ".join(percent(own[key]["mean"]) for key in keys) if keys[0] in own else NONE


def levels(content: Table, files: Files) -> str:
    """EPITOME levels."""
    keys = ("accuracy", "macro_f1", "mcc")
    header = ["mechanism", "view", "source", "n", "majority", "accuracy", "macro-F1", "MCC"]
    header.append("F1 " + " / ".join(LEVELS))
    rows: list[list[str]] = []

    def measured(name: str, view: str, source: str, own: Table) -> list[str]:
        cells = [name, view, source, str(own["n"]), percent(own["majority"]["mean"])]
        return [*cells, *(spread(own[key]) for key in keys), _by_level(own)]

    for name in EPITOME_REDDIT:
        for view, decisions in content["views"].items():
            rows.append(measured(name, VIEW_WORDS[view], "ours", decisions["shipped"][name]))
        rows += [
            measured(name, "no context", words, own) for words, own in baseline(files, name).items()
        ]
        if own := micromodels(files, name):
            figures = [mean_sd(own[key]) for key in ("accuracy", "macro_f1")]
            n = str(round(sum(fold["responses"] for fold in own["folds"])))
            majority = percent(own["majority_accuracy"]["mean"])
            row = [name, "no context", "micromodels, run here", n, majority, *figures]
            rows.append([*row, NONE, NONE])
        for words, source in (
            ("EPITOME [1]", EPITOME_REDDIT),
            ("the same, run by Xu & Jiang [2]", EPITOME_BY_XU),
            ("Flan-T5-xl, 3 B [2]", FLAN_T5_XL_EMH),
            ("micromodels [3]", MICROMODELS),
        ):
            published = source[name]
            figures = [f"{published['accuracy']:.1f}", f"{published['macro_f1']:.1f}", NONE]
            rows.append([name, "published", words, NONE, NONE, *figures, NONE])
    return table(header, rows, left=3)


def weak_interpretations(content: Table, files: Files) -> str:
    """How well the middle level of interpretations is recognised, and the consequence."""
    ours = content["views"]["final"]["shipped"]["interpretations"].get("f1_weak")
    words = baseline(files, "interpretations").get(BASELINES["words"], {}).get("f1_weak")
    counts = files.get("baselines", {}).get("counts", {}).get("interpretations")
    rare = f" ({counts[1]:,} of {sum(counts):,} labels)" if counts else ""
    figures = [
        f"{percent(figure['pooled'])} for {name}"
        for name, figure in (("our model", ours), (BASELINES["words"], words))
        if figure
    ]
    known = f" F1 {', '.join(figures)}, all folds' items together." if figures else ""
    if ours and ours["pooled"] >= FOUND:
        return f"Weak interpretations{rare}:{known}"
    return fill(
        f"**Weak interpretations{rare} are hardly ever found: their F1 is near 0.**{known} The "
        "head detects interpretations but not whether they are weak or strong, so "
        "feedback speaks of interpretations as shown or not shown.",
        width=100,
    )


FOUND = 0.2
"""From this F1 on, a level counts as recognised."""

LEVEL_NOTES = """\
[1] Sharma et al. 2020, Table 3 (3,084 pairs; 75:5:20, split not published). [2] Xu & Jiang 2024,
Table 15 (3,072 pairs, five folds). [3] Lee et al. 2023, Table 1: micromodels see no context, and
their accuracy is too high for so low a macro-F1 to be computed as ours is, so it is **not
comparable**. Ours: the {pairs:,} pairs available here, folds by seeker post, so the published
columns indicate only the order of magnitude. "Commonest label" always predicts the label that is
most frequent over all test responses; tf-idf sees the words of the response alone; both on our
folds."""


def rationales(content: Table, files: Files) -> str:
    """EPITOME rationales: responses with a gold rationale first, then all of them."""
    gold, every = ("token_f1_gold", "iou_f1_gold"), ("token_f1", "iou_f1")
    header = [
        *("mechanism", "source", "responses", "with gold rationale", "**token F1, gold**"),
        *("**IOU-F1, gold**", "token F1, all", "IOU-F1, all", "of these two empty"),
        *("pooled token F1", "token macro-F1"),
    ]
    rows: list[list[str]] = []
    for name, own in content["rows"].items():
        empty = percent(own["always_empty"]["mean"])
        n, marked = str(own["n"]), str(own.get("with_gold", NONE))
        rows.append(
            [
                *(name, "ours", n, marked),
                *(spread(own.get(key)) for key in (*gold, *every)),
                percent(own["empty_agreed"]["mean"]) if "empty_agreed" in own else NONE,
                *(spread(own[key]) for key in ("token_f1_pooled", "token_macro_f1")),
            ]
        )
        rows.append(
            [name, "always empty", n, marked, "0.0", "0.0", empty, empty, empty, NONE, NONE]
        )
        if run := micromodels(files, name):
            figures = [mean_sd(run[key]) if key in run else NONE for key in (*gold, *every)]
            rows.append([name, "micromodels, run here", NONE, NONE, *figures, NONE, NONE, NONE])
        for words, source in (("micromodels [1]", MICROMODELS), ("always empty [1]", MAJORITY)):
            published = [f"{source[name][key]:.1f}" for key in every]
            rows.append([name, words, NONE, NONE, NONE, NONE, *published, NONE, NONE, NONE])
    return table(header, rows, left=2)


RATIONALE_NOTES = """\
The headline is over the responses in which annotators marked a rationale. "All" counts every
response, and two empty rationales count as correct: a model that never predicts a rationale gets
that credit too, and "of these two empty" is its share in ours. The pooled columns take the tokens
of all responses together, without that credit; no paper reports them. Tokens are word pieces of our
encoder, of the whole response: tokens beyond the encoder's length count as missed. Corpus and folds
as above.

[1] Lee et al. 2023, Table 1, ten random 75:5:20 splits, with whole sentences as rationales. Two
empty rationales must count as correct there too, because the token F1 of "always empty" equals its
IOU-F1. Sharma et al. 2020 (Table 4) publish, for their own model, as token F1 and IOU-F1:
{published}.
They do not state how a response without a rationale is counted, and their token F1 for emotional
reactions is below that of "always empty" in Lee et al.'s count. The counts may differ, so these
figures are not used as targets.""".format(
    published="; ".join(
        f"{name.replace('_', ' ')} {own['token_f1']:.1f} and {own['iou_f1']:.1f}"
        for name, own in EPITOME_REDDIT.items()
    )
)


def strategies(content: Table, files: Files) -> str:
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
    simple = {
        words: files.get("baselines", {}).get("strategies", {}).get(name)
        for name, words in TASK_BASELINES.items()
    }
    known = {words: own for words, own in simple.items() if own}
    for words, own in known.items():
        cells = [spread(own["mean"][key]) for key in (*MEASURES, "mcc")]
        rows.append([f"{words}, no context", *cells])
    for words, figures in ESCONV_MEAN.items():
        rows.append([f"{words} [1]", *(f"{figures[key]:.1f}" for key in MEASURES), NONE])
    means = table(header, rows)
    rows = []
    for task, published in ESCONV_TASKS.items():
        own = content["views"]["final"]["shipped"]["tasks"][task]
        rows.append([task, "ours", *(spread(own[key]) for key in (*MEASURES, "mcc"))])
        for words, simple_row in known.items():
            cells = [spread(simple_row["tasks"][task][key]) for key in (*MEASURES, "mcc")]
            rows.append([task, words, *cells])
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
    for words, own in baseline(files, "strategy").items():
        cells = [spread(own[key]) for key in ("accuracy", "macro_f1", "mcc")]
        share = percent(own["majority"]["mean"])
        rows.append(["no context", words, str(own["n"]), share, *cells])
    names = ["view", "decision", "n", "majority", "accuracy", "macro-F1", "MCC"]
    classes = table(names, rows, left=2)
    return f'{means}\n\n{tasks}\n\nThe eight classes, "others" among them:\n\n{classes}'


TASK_BASELINES = {"majority": "always no", "words": BASELINES["words"]}

STRATEGY_NOTES = """\
[1] Xu & Jiang 2024, Table 4. [2] The same, Tables 16 and 17. Seven yes-or-no tasks; each row is the
mean over its classes yes and no, the first table the mean over the tasks. Their models are trained
once for each task on 1,300 dialogues, five folds; ours is one model for all tasks, on the {turns:,}
supporter turns available here, folds by dialogue. ESConv's failed chats are in our training data
but are tested only in the row that says so and in the eight classes: the papers' corpus has none.
"Shipped" uses a threshold per strategy, "most probable" the strategy with the largest logit.
"Always no" never predicts a strategy: its accuracy is the floor of the seven tasks. tf-idf is one
regression over the eight classes, on the words of the turn alone."""


def classes(content: Table, files: Files) -> str:
    """Categorical heads by view, then the baselines."""
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
    for head in decisions["shipped"]:
        for words, own in baseline(files, head).items():
            figures = [spread(own[key]) for key in ("accuracy", "macro_f1", "mcc")]
            pooled = percent(own["macro_f1"]["pooled"])
            share = percent(own["majority"]["mean"])
            rows.append(
                [head, f"{words}, no context", str(own["n"]), share, *figures, NONE, pooled]
            )
    rows.sort(key=lambda row: list(decisions["shipped"]).index(row[0]))
    header = [
        *("head", "view", "n", "majority", "accuracy", "macro-F1", "MCC"),
        *("macro-F1 before calibration", "macro-F1, all folds' items together"),
    ]
    return table(header, rows, left=2)


def annomi(content: Table, files: Files) -> str:
    """The heads of AnnoMI, then two of them with the published figures."""
    shipped = content["views"]["final"]["shipped"]
    heads = ("behaviour", "talk_type")
    rows = [["ours, macro-F1", *(spread(shipped[head]["macro_f1"]) for head in heads)]]
    for words in BASELINES.values():
        if all(words in baseline(files, head) for head in heads):
            figures = [spread(baseline(files, head)[words]["macro_f1"]) for head in heads]
            rows.append([f"{words}, macro-F1", *figures])
    rows += [
        [f"{words} [1], F1", *(f"{own[head]:.0f}" for head in heads)]
        for words, own in M3TCM.items()
    ]
    header = ["model", "therapist (behaviour)", "client (talk type)"]
    return f"{classes(content, files)}\n\nBeside published figures:\n\n{table(header, rows)}"


ANNOMI_NOTES = """\
"No context" is the same model with every neighbour hidden. Folds consist of few, whole
conversations, so they vary widely.

[1] Hossain, Alexandersson & Müller 2024 (M3TCM, LREC-COLING): F1 of utterance classification on
AnnoMI, of therapist and of client utterances, from text with speech and the preceding
turns. Quoted from the abstract and a public summary, because the paper's tables were not
accessible: how F1 is averaged, how sessions are split and which annotator's label counts are not
verified. Ours reads text alone, and is tested on the majority label in held-out sessions.

Wu et al. 2021 measure utterance empathy in motivational interviewing with the Matthews correlation
and reach 0.17 without training on it; their labels are not in AnnoMI, so only the measure is
shared."""

INTENT_NOTES = """\
Tested on human-labelled lines, which no model saw; trained on lines found by key phrases (Welivita
& Pu 2020), so the label distributions differ. Lines have no context."""


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
        *("answered", "accuracy when answered", "accuracy of all"),
    ]
    return table(header, rows)


CALIBRATION_NOTES = """\
Expected calibration error with {bins} bins on all out-of-fold predictions (final view; then the
provisional one). "Noise" is the error that a perfectly calibrated model would show at this n, mean
and 95th percentile over simulated labels. Calibration is a temperature and a bias for each head,
fitted for each fold on the others. A head abstains below the lowest confidence at which {right} %
of the answered turns were correct on the other folds, but on at most {most} % of the turns; the
last columns show the result on the fold itself."""


def coverage(content: Table) -> str:
    """Accuracy of the most confident share of the turns."""
    rows = [
        [head, *(percent(point["accuracy"]) for point in own["risk_coverage"])]
        for head, own in content["rows"].items()
    ]
    first = next(iter(content["rows"].values()))["risk_coverage"]
    return table(
        ["accuracy among the most confident …", *(f"{point['coverage']:.0%}" for point in first)],
        rows,
    )


def everything(results: dict[str, Table]) -> str:
    """All tables, for the terminal."""
    makers: dict[str, Callable[[Table, Files], str]] = {
        "levels": levels,
        "rationales": rationales,
        "strategies": strategies,
        "annomi": annomi,
        "intents": classes,
        "calibration": lambda content, _: calibration(content),
    }
    return "\n\n".join(f"## {name}\n\n{make(results[name], {})}" for name, make in makers.items())
