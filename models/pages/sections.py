"""Tables of the files that other commands write: perceived heads, probes, methods."""

from __future__ import annotations

from typing import Any

from models.evaluate.folds import VIEW_WORDS
from models.evaluate.trait_groups import perceived_values
from models.pages.tables import NONE, mean_sd, table
from models.probes.report import markdown as probe_markdown
from stream_app.core.measures.perceived import PerceivedValues

Content = dict[str, Any]


def _pooled(figure: Content, digits: int = 2) -> str:
    """Value and interval."""
    value, low, high = (figure.get(key) for key in ("value", "low", "high"))
    if value is None or value != value:  # noqa: PLR0124 (NaN)
        return NONE
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _spread(figure: Content) -> str:
    mean, sd = figure.get("mean"), figure.get("sd")
    if mean is None:
        return NONE
    return f"{mean:.2f}" if sd is None else f"{mean:.2f} ± {sd:.2f}"


def _folds(content: Content) -> str:
    numbers = content["folds"]
    return f"{len(numbers)} folds (number {', '.join(map(str, numbers))})."


def perceived(content: Content) -> str:
    """Return each head's training labels and its rank correlation with held-out ratings."""
    learned = table(["head", "learned from"], content["learned_from"].items(), left=2)
    rows = [
        [
            *(row["head"], row["rating"], "yes" if row["own"] else "no", row["view"]),
            *(str(row["sessions"]), str(row["n"]), _pooled(row["spearman"]), _spread(row)),
        ]
        for row in content["correlations"]
    ]
    header = [
        *("head", "rating", "learns from it", "view", "sessions", "ratings"),
        *("Spearman, pooled (95 %)", "over folds"),
    ]
    views = "; ".join(f"{name}: {words}" for name, words in content["views"].items())
    parts = [
        _folds(content) + " Turn outputs are learned from listeners' ratings of stretches of a "
        f"conversation (multiple-instance learning). {_sentence(content['protocol'])} {views}.",
        learned,
        table(header, rows, left=4),
    ]
    if content.get("poolings"):
        pooled = [
            [row["head"], row["rating"], row["pooling"], _pooled(row["spearman"])]
            for row in content["poolings"]
        ]
        names = ["head", "rating", "pooling", "Spearman, pooled (95 %)"]
        parts += ["By how turns are pooled:", table(names, pooled, left=3)]
    return "\n\n".join(parts)


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:].rstrip(".") + "."


def ratings(baselines: Content, views: Content) -> str:
    """Rated empathy: our head by view, and baselines from the answer's words and length."""
    measured = {f"ours, {VIEW_WORDS[view]}": row for view, row in views.items()}
    simple = baselines.get("ratings", {})
    if "words" in simple:
        measured["tf-idf + logistic regression"] = simple["words"]
    if "length" in simple:
        measured["number of words in the answer"] = simple["length"]
    rows = [
        [
            *(name, str(row["n"]), str(row["conversations"]), _pooled(row["spearman"])),
            *(_pooled(row["same_length"] or {}), _spread(row)),
        ]
        for name, row in measured.items()
    ]
    header = [
        *("from", "answers", "conversations", "Spearman (95 %)"),
        *("Spearman, length constant (95 %)", "over folds"),
    ]
    missing = (
        "" if views else "Our head is not measured yet: `python -m models.evaluate` adds it.\n\n"
    )
    return f"{missing}{table(header, rows)}\n\n{RATING_NOTES}"


RATING_NOTES = """\
Rank correlation with a third party's rating of the answer, 1 to 5; undefined for a constant
prediction. tf-idf predicts whether the rating is 4 or 5. Intervals resample conversations; folds
consist of whole conversations. With length constant: ranks of both are regressed on the rank of the
answer's number of words, and the residuals are correlated."""


def micromodels(content: Content) -> str:
    """The micromodels' own figures by mechanism, and the published ones."""
    rows = []
    for name, words in MICROMODEL_RUNS.items():
        for mechanism, own in content[name].items():
            cells = [
                mean_sd(own[key]) if key in own else NONE
                for key in ("accuracy", "macro_f1", *SPANS)
            ]
            rows.append([mechanism, words, *cells, f"{own['theta']['mean']:.2f}"])
    for mechanism, known in content["published"]["micromodels"].items():
        cells = [f"{known[key]:.1f}" for key in ("accuracy", "macro_f1")]
        spans = [f"{known[key]:.1f}" if key in known else NONE for key in SPANS]
        rows.append([mechanism, "published [1]", *cells, *spans, NONE])
    rows.sort(key=lambda row: list(content["micromodels"]).index(row[0]))
    header = [
        *("mechanism", "model", "accuracy", "macro-F1", "token F1, gold", "IOU-F1, gold"),
        *("token F1, all", "IOU-F1, all", "theta"),
    ]
    return f"{table(header, rows, left=2)}\n\n{MICROMODEL_NOTES.format(**content)}"


SPANS = ("token_f1_gold", "iou_f1_gold", "token_f1", "iou_f1")
MICROMODEL_RUNS = {"micromodels": "own rationales left out", "own_seeds": "own rationales as seeds"}
MICROMODEL_NOTES = """\
`research/micromodels` on the {folds} folds of our models, sentences by {encoder}; mean ±
standard deviation. "Own rationales as seeds" also compares a training response with its own
rationales, a literal reading of the paper. "Gold" and "all" as in the table of rationales.

[1] Lee et al. 2023, Table 1, with another sentence encoder and random splits. Their accuracy is
too high for so low a macro-F1 to be computed as ours is."""


def multitrait(content: Content) -> str:
    """Perceived heads by ratings, correlations between heads, and which differ."""
    cells = {(cell["rating"], cell["head"]): cell for cell in content["cells"]}
    kinds = list(dict.fromkeys(kind for kind, _ in cells))
    heads = list(dict.fromkeys(head for _, head in cells))
    rows = [
        [
            kind,
            str(cells[kind, heads[0]]["sessions"]),
            *(_trait(cells[kind, head], content["alpha"]) for head in heads),
        ]
        for kind in kinds
    ]
    every = content["between_heads"]
    pairs = [
        [" and ".join(pair["heads"]), _plain(pair["spearman"], 2), _plain(pair["partial"], 2)]
        for pair in every["pairs"]
    ]
    apart = [
        [
            *(row["head"], row["other"], row["rating"], _pooled(row["difference"])),
            "yes" if row["distinguishable"] else "no",
        ]
        for row in content["distinguishable"]
    ]
    words = (
        f"{_folds(content)} {_sentence(content['protocol'])} **Bold**: the head learns from that "
        f"rating. \\*: p < {content['alpha']} after the correction over {content['tests']} cells."
    )
    difference = (
        "Each head compared with another on a rating that it learns from. Where the interval of "
        "the difference contains 0, the two are not shown to measure different things:"
    )
    return "\n\n".join(
        [
            words,
            table(["rating", "conversations", *heads], rows),
            f"Heads with each other, over {every['n']} {every['over']}:",
            table(["heads", "Spearman", "file held constant"], pairs),
            difference,
            table(
                ["head", "other", "rating", "difference (95 %)", "distinguishable"], apart, left=3
            ),
            f"{SHOWN_VALUES}:\n\n{shown_values(perceived_values(content, {}, heads))}",
        ]
    )


SHOWN_VALUES = (
    "The console shows a group of indistinguishable heads as one value, that of the head "
    "in bold, next to the first of its coefficients"
)


def shown_values(values: PerceivedValues) -> str:
    """The groups of perceived heads with their validity, and the rule that made them."""
    rows = [
        [
            ", ".join(f"**{head}**" if head == group.shown else head for head in group.members),
            *(found.rating, str(found.sessions), str(found.n)),
            f"{found.r:.2f} ({found.low:.2f} to {found.high:.2f})",
        ]
        for group in values.groups
        for found in group.validity
    ]
    header = ["heads", "rating", "conversations", "ratings", "r (95 %)"]
    return f"{table(header, rows, left=2)}\n\n{_sentence(values.protocol)}"


def _trait(cell: Content, alpha: float) -> str:
    shown = _pooled(cell["partial"])
    holm = cell["p_holm"]
    shown = f"**{shown}**" if cell["own"] else shown
    return shown + ("\\*" if holm is not None and holm < alpha else "")


def _plain(value: float | None, digits: int) -> str:
    return NONE if value is None else f"{value:.{digits}f}"


def probes(content: Content) -> str:
    """Share of probes classified as empathic, by scorer."""
    size = content["probe"]["size"]
    words = f"{size} cases for each condition and mechanism; per cent with 95 % intervals (below)."
    return f"{words}\n\n{probe_markdown(content)}"


def encoder_mean(content: Content) -> str:
    """Two encoders, and the mean of their log-probabilities."""
    rows = [
        [
            name,
            _pooled(row["spearman"], 3),
            f"{100 * row['accuracy']:.1f}",
            f"{100 * row['macro_f1']:.1f}",
        ]
        for name, row in content["rows"].items()
    ]
    answers = next(iter(content["rows"].values()))["answers"]
    return "\n\n".join(
        [
            f"{_folds(content)} {answers} held-out answers. Each model learns EPITOME's levels "
            "alone; the mean is of the log-probabilities. It is the teacher that distilling both "
            "encoders would use, so it bounds what a student could gain on the labelled answers. "
            "Not calibrated, most probable levels; the service's model learns more tasks.",
            table(
                [
                    "model",
                    "Spearman of expected and labelled total (95 %)",
                    "accuracy, mean",
                    "macro-F1, mean",
                ],
                rows,
            ),
            "Gain in Spearman of the mean over the first encoder: "
            + _pooled(content["gain"], 3)
            + ".",
        ]
    )


def whole_recipe(content: Content) -> str:
    """Whole trainings on the same folds: levels with gains over the first, then other heads."""
    rows = content["rows"]
    levels = [
        [
            name,
            _pooled(row["spearman"], 3),
            _pooled(row["gain"], 3) if "gain" in row else NONE,
            f"{100 * row['accuracy']:.1f}",
            _pooled(row["accuracy_gain"], 1) if "accuracy_gain" in row else NONE,
            f"{100 * row['macro_f1']:.1f}",
        ]
        for name, row in rows.items()
    ]
    others = {name: row["others"] for name, row in rows.items() if "others" in row}
    heads = list(next(iter(others.values())))
    answers = next(iter(rows.values()))["answers"]
    return "\n\n".join(
        [
            f"{_folds(content)} {answers} held-out answers. Each model learns all tasks; a student "
            "learns from the labels and from its teacher's outputs. Gains are over the first row, "
            "with 95 % intervals over answers. Not calibrated, most probable levels.",
            table(
                [
                    "model",
                    "Spearman of expected and labelled total (95 %)",
                    "gain",
                    "accuracy, mean",
                    "gain",
                    "macro-F1, mean",
                ],
                levels,
            ),
            "Macro-F1 of the other heads on the same folds:",
            table(
                ["model", *heads],
                [
                    [name, *(f"{100 * row[head]:.1f}" for head in heads)]
                    for name, row in others.items()
                ],
            ),
        ]
    )


GOLD_NOTES = """\
`{bundle}` on the tenth of EPITOME's pairs that its training left out; 95 % intervals resample
seeker posts. "All" counts two empty rationales as correct, which "always empty"
gets, too."""


def gold_rationales(content: Content) -> str:
    """Rationales of the shipped bundle: responses with a gold rationale first, then all."""
    rows = [
        [
            name,
            *(str(row["responses"]), str(row["with_gold"])),
            *(_rate(row[key]) for key in ("token_f1_gold", "iou_f1_gold", "token_f1", "iou_f1")),
            f"{100 * row['always_empty']:.1f}",
        ]
        for name, row in content["rows"].items()
    ]
    header = [
        *("mechanism", "responses", "with gold rationale", "**token F1, gold**"),
        *("**IOU-F1, gold**", "token F1, all", "IOU-F1, all", "always empty, all"),
    ]
    return "\n\n".join([GOLD_NOTES.format(bundle=content["bundle"]), table(header, rows)])


def _rate(found: Content) -> str:
    value, low, high = (100 * found[key] for key in ("value", "low", "high"))
    return f"{value:.1f} ({low:.1f} to {high:.1f})"
