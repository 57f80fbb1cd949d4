"""The model card, generated from the manifest: no figure in it is typed by hand.

`python -m models.card --bundle FOLDER` regenerates it after an evaluation.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from models.bundle import CARD, MANIFEST
from models.fit.calibrate import LARGEST_ABSTENTION, RIGHT_SHARE
from models.labels import HEADS_BY_NAME
from models.pages import document, report, sections, tables
from models.pages.outcomes import figure
from models.pages.published import EPITOME_REDDIT, ESCONV_MEAN, MEASURES
from stream_app.core.measures.perceived import PerceivedValues

CROSS_VALIDATED = ("levels", "rationales", "strategies", "annomi", "intents", "calibration")

INTENDED_USE = """\
To show supervisors, trainers and researchers how empathy is expressed in a conversation, turn by
turn, and where to look. It is **not a diagnosis, not a risk assessment and not a performance
rating**: no decision about a client or a counsellor should rest on it without a person who has
read the conversation."""

LICENCE_NOTE = """\
The base encoder is under Apache-2.0. The corpora are offered for research or non-commercial use,
and the weights were learned from them. Treat the weights as research and non-commercial material:
before any commercial use, train on data whose terms allow it, or ask the corpora's publishers.
The bundle does not contain the texts themselves."""

LIMITS = """\
- English only. The levels were learned from Reddit posts, the strategies from paid volunteers'
  chats, the motivational interviewing labels from acted demonstrations: live counselling,
  telephone transcripts and customer service differ from all three.
- Each head is trained on its own corpus alone. On other kinds of conversations its probabilities
  may be badly calibrated even where its labels are useful.
- Rare labels (weak interpretations and explorations, options, negotiation) rest on few examples;
  look at macro-F1 rather than accuracy.
- A turn is encoded without its context, so rationales depend on the turn alone; they are shown
  only where the level is above none. A turn of more than {max_tokens} tokens is
  scored in parts.
- Expressed empathy is not perceived empathy. The perceived heads are learned from listeners'
  ratings of whole sessions, not of turns, and are weaker than the expressed ones (above).
- Groups of speakers were not compared, because the corpora do not describe the speakers."""

SHIPPED_NOTE = """\
Levels are the most probable ones after the offsets in the manifest, which do not change the
reported probabilities. Each strategy also has its own detection threshold (`label_thresholds`), for
analyses by strategy; the service reports the most probable one. A head abstains (`abstained` in a
score) below the lowest confidence at which {right} % of the answered turns were correct out of
fold, but on at most {most} % of the turns. All of this, and the calibration (a temperature and a
bias for each head), was fitted on out-of-fold predictions of the cross-validation, not on the turns
that this bundle is tested on below."""


DISTILLED_NOTE = """\
Levels are the most probable ones after the offsets in the manifest, which do not change the
reported probabilities. Temperature and bias of each head were fitted on turns held out from both
models, without their labels, so that probabilities are closest to the large bundle's. Offsets and
thresholds (including abstention) are the large bundle's, fitted on out-of-fold predictions of its
cross-validation (`docs/evaluation.md`), because no fold was distilled."""


def model_card(manifest: dict[str, Any], files: dict[str, Any] | None = None) -> str:
    """The card as Markdown; `files`: the evaluation's JSON by name, by default from docs/."""
    files = document.read_all(document.FOLDER) if files is None else files
    training, metrics = manifest["training"], manifest["metrics"]
    distilled = _is_distilled(manifest)
    sections = [
        f"# {manifest['name']} {manifest['version']} ({manifest['profile']})",
        _opening(manifest),
        "## Intended use\n\n" + INTENDED_USE,
        "## Heads\n\n" + _heads(manifest),
        "## Data and licences\n\n" + _data(training) + "\n\n" + LICENCE_NOTE,
        *(_distilled(manifest, files) if distilled else _trained(manifest, files)),
        *(
            [f"## Emotional reactions\n\n{_reactions(metrics['reactions'])}"]
            if "reactions" in metrics
            else []
        ),
        *([f"## Distress probe\n\n{_distress(metrics)}"] if manifest.get("distress") else []),
        *([f"## Crisis probe\n\n{_crisis(metrics['crisis'])}"] if manifest.get("crisis") else []),
        *([f"## Perceived values\n\n{_perceived(manifest)}"] if manifest.get("perceived") else []),
        "## This bundle on its own held-out turns\n\n"
        f"Split: {training['split']}. Per cent; with the turns before and after the scored one, "
        "on the graphs of this bundle. Fewer turns than above, so look there first; majority is "
        "the accuracy of always predicting the most frequent label.\n\n"
        + report.markdown(metrics["test"])
        + "\n\n"
        + _unproven(metrics["test"]),
        "With preceding turns only (provisional scores):\n\n"
        + report.markdown(metrics["test_provisional"]),
        "## Export\n\n" + _export(manifest),
        "## Limits\n\n" + LIMITS.format(max_tokens=manifest["encoder"]["max_tokens"]),
        "## How to rebuild\n\n"
        "Install the `train` extra, put the corpora in one folder, then\n\n"
        f"```\nmake {'nano' if distilled else 'folds train bundle evaluate'} DATA=FOLDER\n```\n\n"
        f"{'It' if distilled else 'The encoder and the expressed heads'} "
        f"{'was' if distilled else 'were'} trained by `{training['command']}`.",
    ]
    return "\n\n".join(sections) + "\n"


def _opening(manifest: dict[str, Any]) -> str:
    training, window = manifest["training"], manifest["window"]
    how = f"({training['base_model']}, fine-tuned)"
    if "distillation" in training:
        layers = len(training["distillation"]["layers"])
        how = f"({layers} layers, distilled from the default bundle's {training['base_model']})"
    elif training.get("teacher"):
        how = (
            f"({training['base_model']}, fine-tuned on the labels and on the answers of a "
            f"fine-tuned {training['teacher']})"
        )
    return (
        f"A turn encoder {how} and a context head, {training['parameters'] / 1e6:.1f} million "
        f"parameters altogether, that score the turns of a conversation with up to "
        f"{window['before']} turns before and {window['after']} after."
    )


def _trained(manifest: dict[str, Any], files: dict[str, Any]) -> list[str]:
    """Sections on decisions and data of a cross-validated model."""
    return [
        "## Cross-validated results\n\n" + _cross_validated(files),
        "## Decisions and confidence\n\n"
        + SHIPPED_NOTE.format(right=round(100 * RIGHT_SHARE), most=round(100 * LARGEST_ABSTENTION))
        + "\n\n"
        + _decisions(manifest),
        "## Perceived empathy\n\n" + document.section(files, "perceived"),
        "## Context probe\n\n" + document.section(files, "probes"),
        "## Empathy index\n\n" + _empathy(manifest),
        "## Outcome risks\n\n" + _outcomes(manifest),
    ]


def _distilled(manifest: dict[str, Any], files: dict[str, Any]) -> list[str]:
    """Sections on decisions and data of a distilled model."""
    about = manifest["training"]["distillation"]
    taught = (
        f"It was trained on the large model's outputs for {about['turns']} turns: the large "
        f"model's training turns, {about['chats']} chats of EmpatheticDialogues and "
        f"{about['service']} service dialogues, without any label. Layers "
        f"{', '.join(str(layer + 1) for layer in about['layers'])} of the large model were kept, "
        f"with {about['units']} feed-forward units each."
    )
    return [
        "## Compared with the bundle it was distilled from\n\n"
        + taught
        + "\n\n"
        + document.section(files, "nano"),
        "## Decisions and confidence\n\n" + DISTILLED_NOTE + "\n\n" + _decisions(manifest),
        "## Empathy index\n\n" + _empathy(manifest),
        "## Outcome risks\n\n" + _outcomes(manifest),
    ]


def _reactions(found: dict[str, Any]) -> str:
    before, after = found["before"], found["after"]
    names = {"accuracy": "accuracy", "macro_f1": "macro-F1", "log_loss": "log loss",
             "spearman": "Spearman of the expected level"}  # fmt: skip
    rows = [[words, f"{before[key]:.3f}", f"{after[key]:.3f}"] for key, words in names.items()]
    return (
        "After the export, this head alone was fine-tuned on more context contrast, so that "
        "sympathy after good news is not classified as empathic (`python -m export.reactions`); "
        f"the cross-validated figures above predate this. On {after['n']} held-out responses:\n\n"
        + tables.table(["", "before", "after"], rows)
        + "\n\nThe expected level (0-2) of ordinary replies changed by "
        f"{found['ordinary_turns_moved']:.3f} on average."
    )


def _distress(metrics: dict[str, Any]) -> str:
    found = metrics["distress"]
    openings, service = found["openings"], found["service_turns"]
    return (
        "A logistic regression that detects wording of distress from a client turn's vectors. It "
        "is trained on opening turns of EmpatheticDialogues (CC BY-NC 4.0), labelled by the "
        "emotion their writers were given, and on users' turns in service dialogues; it sees the "
        f"turn alone. On {openings['n']} held-out openings its AUROC is {openings['auroc']:.2f}; "
        f"at a threshold of 0.8 it detects {100 * openings['distress_found']:.0f} % of those in "
        f"distress, with false positives on {100 * openings['no_distress_found']:.0f} % of the "
        f"others and {100 * service['found']:.0f} % of {service['n']} service turns. It detects "
        "wording, not feeling: Spearman's correlation with the intensity of emotion that seekers "
        "report before a chat is "
        f"{found['esconv']['spearman_strongest_and_intensity']:.2f} "
        f"({found['esconv']['chats']} ESConv chats), with the distress that writers of "
        f"{found['essays']['n']} essays report of themselves {found['essays']['spearman']:.2f}. "
        "`python -m models.fit.distress evaluate` prints these figures."
    )


def _crisis(found: dict[str, Any]) -> str:
    written, corpora = found["written"], found["corpora"]
    probe = written["detectors"]["probe"]
    recall, precision = probe["recall"], probe["precision"]
    seekers = corpora["ESConv, seekers' turns"]
    return (
        "A logistic regression on a client turn's vectors, for crisis language. It is trained on "
        "turns written for this project, with opening turns of EmpatheticDialogues and users' "
        "turns in service dialogues as assumed negatives. It is weak: on "
        f"{written['turns']} written turns of unseen phrase families its AUROC is "
        f"{found['auroc']:.2f}, and at its threshold of 0.5 it finds "
        f"{100 * recall['value']:.0f} % (95 % interval {100 * recall['low']:.0f}–"
        f"{100 * recall['high']:.0f}) of the crisis turns, with a precision of "
        f"{100 * precision['value']:.0f} % in that set and {seekers['hits']['probe']:.0f} hits in "
        "1,000 seekers' turns of ESConv. No shipped rule alerts on it alone, and it is no risk "
        "assessment. `docs/crisis.md` has all figures."
    )


def _perceived(manifest: dict[str, Any]) -> str:
    """Which perceived heads the console shows as one value, and their validity."""
    values = msgspec.convert(manifest["perceived"], PerceivedValues)
    parts = [f"{sections.SHOWN_VALUES}; scores keep every head.", sections.shown_values(values)]
    if _is_distilled(manifest):
        parts.append("Measured on the large bundle's fold models: no fold was distilled.")
    return "\n\n".join(parts)


def _cross_validated(files: dict[str, Any]) -> str:
    if missing := [name for name in CROSS_VALIDATED if name not in files]:
        return document.section(files, missing[0])
    views = [files[name]["views"]["final"] for name in ("levels", "annomi", "intents")]
    heads = {name: row for view in views for name, row in view["shipped"].items() if "n" in row}
    heads |= {"strategy": files["strategies"]["views"]["final"]["classes"]["shipped"]}
    rows = []
    for name in HEADS_BY_NAME:
        if name not in heads:
            continue
        row, sure = heads[name], files["calibration"]["rows"][name]
        rows.append(
            [
                *(name, str(row["n"]), tables.percent(row["majority"]["mean"])),
                *(tables.spread(row[key]) for key in ("accuracy", "macro_f1", "mcc")),
                *(tables.percent(sure[key]) for key in ("ece_before", "ece_after")),
                tables.percent(sure["abstain"]["coverage"]),
                tables.percent(sure["abstain"]["accuracy"]),
            ]
        )
    header = [
        *("head", "n", "majority", "accuracy", "macro-F1", "MCC", "ECE before", "ECE after"),
        *("answered", "accuracy when answered"),
    ]
    mean = files["strategies"]["views"]["final"]["shipped"]["mean"]
    strategy_rows = [["this model", *(tables.spread(mean[key]) for key in MEASURES)]]
    strategy_rows += [
        [name, *(f"{figures[key]:.1f}" for key in MEASURES)]
        for name, figures in ESCONV_MEAN.items()
    ]
    parts = [
        tables.folds_line(files["levels"])
        + " Per cent, with preceding and following turns; every table and its protocol are in "
        "`docs/evaluation.md` of the repository.",
        tables.table(header, rows),
        "Levels and published figures (EPITOME):",
        _beside_published(files),
        "Rationales: on responses with a gold rationale, then on all responses, where two empty "
        "rationales count as correct; the last column is the score of never predicting one. "
        "Published figures may be computed differently.",
        _rationales(files),
        "ESConv as seven binary tasks (Xu & Jiang), means over the tasks:",
        tables.table(
            ["model", "macro precision", "macro recall", "macro-F1", "accuracy"], strategy_rows
        ),
        "Corpora, splits and token units differ from the papers' (notes in `docs/evaluation.md`).",
    ]
    return "\n\n".join(parts)


def _beside_published(files: dict[str, Any]) -> str:
    columns = ("accuracy", "macro_f1")
    rows = []
    for name, published in EPITOME_REDDIT.items():
        own = files["levels"]["views"]["final"]["shipped"][name]
        rows.append([name, "this model", *(tables.spread(own[key]) for key in columns)])
        rows.append([name, "EPITOME", *(f"{published[key]:.1f}" for key in columns)])
    return tables.table(["mechanism", "source", "accuracy", "macro-F1"], rows, left=2)


def _rationales(files: dict[str, Any]) -> str:
    columns = ("token_f1_gold", "iou_f1_gold", "token_f1", "iou_f1", "always_empty")
    rows = [
        [name, *(tables.spread(own.get(key)) for key in columns)]
        for name, own in files["rationales"]["rows"].items()
    ]
    header = [
        *("mechanism", "token F1, gold", "IOU-F1, gold", "token F1, all", "IOU-F1, all"),
        "always empty, all",
    ]
    return tables.table(header, rows)


def _decisions(manifest: dict[str, Any]) -> str:
    rows = []
    for head in manifest["heads"]:
        spans = head["rationale"]
        rows.append(
            [
                head["name"],
                f"{head['temperature']:.2f}",
                ", ".join(f"{value:+.1f}" for value in head["offsets"]) or tables.NONE,
                f"{head['abstain_below']:.2f}",
                tables.NONE if spans is None else f"{spans['threshold']:.2f}",
            ]
        )
    header = ["head", "temperature", "level offsets", "abstains below", "rationale threshold"]
    return tables.table(header, rows)


def _heads(manifest: dict[str, Any]) -> str:
    lines = ["| head | turns of | labels | learned from |", "| --- | --- | --- | --- |"]
    for head in manifest["heads"]:
        known = HEADS_BY_NAME.get(head["name"])
        corpus = known.corpus if known else "judgements of answers (reader)"
        labels, roles = ", ".join(head["labels"]), ", ".join(head["roles"])
        lines.append(f"| {head['name']} | {roles} | {labels} | {corpus} |")
    return "\n".join(lines)


def _data(training: dict[str, Any]) -> str:
    lines = [
        "| corpus | conversations | labelled turns | contrast contexts | licence | from |",
        "| --- | ---: | ---: | ---: | --- | --- |",
    ]
    lines += [
        f"| {row['name']} | {row['items']} | {row['turns']} | {row['contexts']} | "
        f"{row['licence']} | {row['url']} |"
        for row in training["data"]
    ]
    return "\n".join(lines)


def _unproven(test: report.Metrics) -> str:
    names = [name for name, v in test.items() if v["accuracy"] <= v["majority"]]
    if not names:
        return "Every head is more accurate than always predicting the most frequent label."
    return (
        f"**Not proven:** {', '.join(names)}. On this split, always predicting the most frequent "
        "label is at least as accurate; do not rely on these heads alone."
    )


EMPATHY_NOTE = """\
`empathy_index` is the mean of the counsellor's answers, weighted by how much each client turn calls
for an empathic one; `low_empathy_risk` is the probability that the index since the session's last
change of level lies below the tenth percentile of the reference's sessions. Both measure what
the counsellor *expressed*; neither predicts a client's judgement of the session. Weights and
references are in the manifest (`empathy`), definitions in `docs/low-empathy.md`."""
NO_EMPATHY = "This bundle has no empathy index yet."


def _empathy(manifest: dict[str, Any]) -> str:
    """The references of the index, and its benchmark."""
    empathy, measured = manifest.get("empathy"), manifest["metrics"].get("construct")
    if not empathy:
        return NO_EMPATHY
    named = {**empathy["domains"], **empathy["approaches"]}
    rows = [
        [name, *(f"{own[key]:.2f}" for key in ("mean", "low", "answered_share"))]
        for name, own in named.items()
    ]
    header = ["reference", "mean index", "tenth percentile", "opportunities answered"]
    parts = [EMPATHY_NOTE, tables.table(header, rows)]
    if measured:
        parts.append(_construct(measured))
    elif _is_distilled(manifest):
        parts.append(
            "The figures are the large bundle's; the benchmark was not run on this bundle."
        )
    else:
        parts.append("The benchmark was not run.")
    return "\n\n".join(parts)


def _construct(measured: dict[str, Any]) -> str:
    """The benchmark's headline figures; docs/evaluation.md has their intervals."""
    rows = [
        ["one answer: Spearman of expected and labelled total", measured["one_answer"]],
        ["rated exchanges: Spearman with the rating 1-5", measured["rated"]["spearman"]],
        ["the same at equal length", measured["rated"]["at_equal_length"]],
    ]
    for domain, own in measured["composed"].items():
        rows += [
            [f"composed, {domain}: Spearman of -risk and labelled empathy", own["spearman"]],
            [f"composed, {domain}: AUROC after six answers", own["auroc_after_six"]],
            [f"composed, {domain}: AUROC after three", own["auroc_after_three"]],
        ]
    for domain, own in measured.get("misplaced", {}).items():
        rows.append([f"swapped answers, {domain}: AUROC after six answers", own["after_six"]])
    for domain, ways in measured["degraded"].items():
        for way, (end, soon) in ways.items():
            rows += [
                [f"degraded, {domain}: {way}: AUROC at the end", end],
                [f"degraded, {domain}: {way}: AUROC after three turns", soon],
            ]
    rows.append(["AnnoMI low quality, topics held out: AUROC", measured["annomi_quality"]])
    rows += [
        [f"Spearman of the index and the survey, {name}", value]
        for name, value in measured["surveys"].items()
    ]
    cells = [[name, tables.NONE if value is None else f"{value:.2f}"] for name, value in rows]
    alerts = [
        f"In {domain}, the shipped rule fires in {own['none']['fired_per_100']:.0f} of 100 "
        "sessions whose second half shows no mechanism and in "
        f"{own['strong']['fired_per_100']:.0f} of 100 of the same sessions with strongly empathic "
        "answers."
        for domain, own in measured["alerts"].items()
    ]
    return "\n\n".join(
        [
            "On sessions of known empathy (`python -m models.construct evaluate`), by models "
            "trained on none of them; protocol and intervals are in `docs/evaluation.md`.",
            tables.table(["figure", "value"], cells),
            " ".join(alerts),
        ]
    )


OUTCOME_NOTE = """\
Predictions of people's judgements of whole sessions, each for sessions of its own domain alone:
additive models over the aggregates of both sides' turns so far
(`stream_app/core/measures/outcomes.py`). They do not measure empathy (`docs/outcomes.md`). Sessions
that have ended use a separate model of the same form, fitted on whole sessions."""
NO_OUTCOMES = "This bundle has no outcome models yet."


def _outcomes(manifest: dict[str, Any]) -> str:
    """The bundle's outcomes, and their AUROC on held-out sessions."""
    outcomes, measured = manifest.get("outcomes"), manifest["metrics"].get("outcomes")
    if not outcomes:
        return NO_OUTCOMES
    names = ", ".join(
        f"`{name}` ({model.get('approach') or model['domain']})" for name, model in outcomes.items()
    )
    note = f"{OUTCOME_NOTE} In this bundle: {names}."
    if not measured:
        return f"{note} They are the large bundle's." if _is_distilled(manifest) else note
    rows = [
        [name, str(row["sessions"]), str(row["positive"]), figure(row)]
        for name, row in measured["out_of_fold"].items()
    ]
    return "\n\n".join(
        [
            note,
            "At the end of sessions held out from every fit (single sessions; whole topics are "
            "harder, see `docs/evaluation.md`, which also compares sessions of equal length):",
            tables.table(["outcome", "sessions", "with it", "AUROC (95 %)"], rows),
        ]
    )


def _is_distilled(manifest: dict[str, Any]) -> bool:
    return "distillation" in manifest["training"]


def _export(manifest: dict[str, Any]) -> str:
    metrics = manifest["metrics"]
    parity = metrics["parity"]
    text = (
        "The float32 graphs agree with the PyTorch model within "
        f"{parity['encoder_max_abs_difference']:.1e} (encoder) and "
        f"{parity['head_max_abs_difference']:.1e} (head) over {parity['shapes']} shapes; the "
        f"bound is {parity['tolerance']:.0e}."
    )
    figures = metrics.get("quantisation")
    if figures is None:
        return text
    return (
        f"{text}\n\nEncoder in this bundle: {figures['chosen']}. Candidates were compared with "
        "float32 on all held-out turns of each head's role; the gate requires at least "
        f"{100 * figures['least_agreement']:.0f} % equal labels in every head, and no significant "
        f"loss of more than {100 * figures['largest_macro_f1_loss']:.0f} point of macro-F1: "
        "95 % intervals, by resampling the labelled turns. "
        "Speeds are of one thread in one run, to be compared within the table.\n\n"
        + encoders(figures)
    )


def encoders(figures: dict[str, Any]) -> str:
    """Format the encoders that the gate compared as Markdown tables."""
    lines = [
        "| encoder | passes | same in any batch | turns/s | × float32 | MB |",
        "| --- | --- | --- | ---: | ---: | ---: |",
    ]
    reference = figures["reference"]
    lines.append(
        f"| float32 | – | yes | {reference['turns_per_second']:.0f} | 1.00 "
        f"| {reference['encoder_bytes'] / 1e6:.1f} |"
    )
    for name, values in figures["candidates"].items():
        words = ["yes" if values[key] else "no" for key in ("passes", "batch_independent")]
        lines.append(
            f"| {name} | {words[0]} | {words[1]} | {values['turns_per_second']:.0f} "
            f"| {values['speed_ratio']:.2f} | {values['encoder_bytes'] / 1e6:.1f} |"
        )
    names = list(figures["candidates"])
    lines += [
        "",
        "| head | " + " | ".join(f"{name}: equal labels, macro-F1 change" for name in names) + " |",
        "| --- |" + " ---: |" * len(names),
    ]
    for head in figures["candidates"][names[0]]["heads"]:
        cells = [figures["candidates"][name]["heads"][head] for name in names]
        shown = " | ".join(
            f"{100 * cell['agreement']:.1f} %, {100 * cell['macro_f1_difference']:+.1f} "
            f"({' to '.join(f'{100 * end:+.1f}' for end in cell['macro_f1_interval'])})"
            for cell in cells
        )
        lines.append(f"| {head} | {shown} |")
    return "\n".join(lines)


def main(
    bundle: Annotated[Path, typer.Option(help="A bundle's folder.")] = Path(
        "stream_app/bundles/default"
    ),
) -> None:
    """Regenerate the card of a bundle."""
    manifest = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    (bundle / CARD).write_text(model_card(manifest), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
