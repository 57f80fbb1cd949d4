"""The model card, written from the manifest: no figure in it is typed by hand."""

from __future__ import annotations

from typing import Any

from export import gate
from models.evaluate import report
from models.evaluate.published import EPITOME_REDDIT
from models.labels import HEADS_BY_NAME

INTENDED_USE = """\
To show supervisors, trainers and researchers how empathy is expressed in a conversation, turn by
turn, and where to look. It is **not a diagnosis, not a risk assessment and not a performance
rating**: no decision about a client or a counsellor should rest on it without a person who has
read the conversation."""

LICENCE_NOTE = """\
The base encoder is under Apache-2.0. The corpora are offered for research or non-commercial use,
and the weights were learned from them. Treat the weights as research and non-commercial material:
before any commercial use, train on data whose terms allow it, or ask the corpora's publishers.
The texts themselves are not part of this bundle."""

LIMITS = """\
- English only. The levels were learned from Reddit posts, the strategies from paid volunteers'
  chats, the motivational interviewing labels from acted demonstrations: live counselling,
  telephone transcripts and customer service differ from all three.
- Each head knows only its own corpus. On conversations of another kind its probabilities may be
  badly calibrated even where its labels are useful.
- Rare labels (weak interpretations and explorations, options, negotiation) rest on few examples;
  look at macro-F1 rather than accuracy.
- A turn is encoded without its context, so rationales are chosen from the turn alone; they are
  shown only where the level is above none. Text beyond {max_tokens} tokens of a turn is not read.
- Expressed empathy is not perceived empathy: what the listener felt is not measured here.
- Groups of speakers were not compared: the corpora do not say who is speaking."""

PROTOCOL_NOTE = """\
The published model is trained on the publisher's whole corpus with RoBERTa-base, two encoders a
mechanism, and its own split; ours is one small shared encoder for all heads, on the part of the
corpus that is available here, split by seeker post. The paper does not say how its token
and span scores are averaged; ours are explained in `models/evaluate/metrics.py`. So the columns
show the order of magnitude and no more."""


def model_card(manifest: dict[str, Any]) -> str:
    """The card as Markdown."""
    training, metrics = manifest["training"], manifest["metrics"]
    sections = [
        f"# {manifest['name']} {manifest['version']} ({manifest['profile']})",
        f"A turn encoder ({training['base_model']}, fine-tuned) and a context head that score "
        f"the turns of a conversation with up to {manifest['window']['before']} turns before and "
        f"{manifest['window']['after']} after.",
        "## Intended use\n\n" + INTENDED_USE,
        "## Heads\n\n" + _heads(manifest),
        "## Data and licences\n\n" + _data(training) + "\n\n" + LICENCE_NOTE,
        "## Results on the held-out split\n\n"
        f"Split: {training['split']}. Per cent; with the turns before and after the scored one, "
        "on the graphs of this bundle. ECE is the expected calibration error before and after "
        "the temperature fitted on the validation split; majority is the accuracy of always "
        "giving the commonest label.\n\n"
        + report.markdown(metrics["test"])
        + "\n\n"
        + _unproven(metrics["test"]),
        "With the turns before only (provisional scores):\n\n"
        + report.markdown(metrics["test_provisional"]),
        "### Beside EPITOME's published figures\n\n"
        + _beside_published(metrics["test"])
        + "\n\n"
        + PROTOCOL_NOTE,
        "## Session risk\n\n" + _risk(manifest),
        "## Export\n\n" + _export(manifest),
        "## Limits\n\n" + LIMITS.format(max_tokens=manifest["encoder"]["max_tokens"]),
        "## How to rebuild\n\n"
        "Install the `train` extra, put the corpora in one folder, then\n\n"
        f"```\n{training['command']}\npython -m models.evaluate --model build/model\n"
        f"python -m export --model build/model --out FOLDER --profile {manifest['profile']}\n"
        "python -m models.risk --bundle FOLDER\n```",
    ]
    return "\n\n".join(sections) + "\n"


def _heads(manifest: dict[str, Any]) -> str:
    lines = ["| head | turns of | labels | learned from |", "| --- | --- | --- | --- |"]
    for head in manifest["heads"]:
        corpus = HEADS_BY_NAME[head["name"]].corpus
        labels, roles = ", ".join(head["labels"]), ", ".join(head["roles"])
        lines.append(f"| {head['name']} | {roles} | {labels} | {corpus} |")
    return "\n".join(lines)


def _data(training: dict[str, Any]) -> str:
    lines = [
        "| corpus | conversations | labelled turns | licence | from |",
        "| --- | ---: | ---: | --- | --- |",
    ]
    lines += [
        f"| {row['name']} | {row['items']} | {row['turns']} | {row['licence']} | {row['url']} |"
        for row in training["data"]
    ]
    return "\n".join(lines)


def _unproven(test: report.Metrics) -> str:
    names = [name for name, v in test.items() if v["accuracy"] <= v["majority"]]
    if not names:
        return "Every head is more accurate than its commonest label."
    return (
        f"**Not proven:** {', '.join(names)}. On this split always giving the commonest label is "
        "at least as accurate; do not rely on these heads alone."
    )


def _beside_published(test: report.Metrics) -> str:
    columns = ("accuracy", "macro_f1", "token_f1", "iou_f1")
    lines = [
        "| mechanism | accuracy | macro-F1 | token F1 | IOU-F1 |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, published in EPITOME_REDDIT.items():
        ours = test[name] | test[name].get("rationale", {})
        cells = [f"{100 * ours[c]:.1f} ({published[c]:.1f})" for c in columns if c in ours]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "Ours (published), per cent, Reddit.\n\n" + "\n".join(lines)


RISK_NOTE = """\
The probability that the person who was listened to will rate the session low: a logistic model
over the aggregates after each counsellor turn, fitted on ESConv chats (failed, or rated 1-2 by
the seeker for empathy, against rated 4-5; a rating of 3 is left out). Only the aggregates of
expressed empathy, questions, reflections and talk share go in, not what the client says. The
alert threshold is the one that gave ten false alarms per 100 good sessions on the training and
validation parts."""


def _risk(manifest: dict[str, Any]) -> str:
    risk, figures = manifest["risk"], manifest["metrics"].get("risk")
    if risk is None or figures is None:
        return "This bundle has no risk model: `python -m models.risk` fits one."
    lines = [
        "| part | sessions (low) | AUROC end | after 10 turns | after 6 | Brier | false alarms "
        "per 100 good | found per 100 low |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for part, row in figures.items():
        early = [
            f"{row[f'auroc_after_{turns}']:.2f} (n {row[f'sessions_after_{turns}']})"
            for turns in (10, 6)
        ]
        lines.append(
            f"| {part} | {row['sessions']} ({row['low']}) | {row['auroc_end']:.2f} "
            f"| {' | '.join(early)} | {row['brier_end']:.3f} "
            f"| {row['false_alarms_per_100_good']:.0f} | {row['detected_per_100_low']:.0f} |"
        )
    weights = ", ".join(f"{name} {value:+.2f}" for name, value in risk["weights"].items())
    threshold = f"Alert from {risk['enter']:.2f}, cleared below {risk['exit']:.2f}."
    return "\n\n".join(
        [RISK_NOTE, threshold, "\n".join(lines), f"Weights on the raw features: {weights}."]
    )


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
        "float32 on all held-out turns of each head's role; the gate asks for at least "
        f"{100 * figures['least_agreement']:.0f} % equal labels and at most "
        f"{100 * figures['largest_macro_f1_loss']:.0f} point of macro-F1 lost in every head. "
        "Speeds are of one thread in one run, to be compared within the table.\n\n"
        + gate.markdown(figures)
    )
