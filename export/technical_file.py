"""`python -m export.technical_file`: write docs/compliance/technical-file.md.

By the points of Annex IV of Regulation (EU) 2024/1689, from the default bundle's manifest and the
results in docs/evaluation. What those do not know is a link to the page that does.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

ROOT: Final = Path(__file__).parents[1]
BUNDLE: Final = ROOT / "stream_app" / "bundles" / "default"
EVALUATION: Final = ROOT / "docs" / "evaluation"
FILE: Final = ROOT / "docs" / "compliance" / "technical-file.md"
COMMAND: Final = "python -m export.technical_file"


def text(bundle: Path = BUNDLE, evaluation: Path = EVALUATION) -> str:
    """The whole file, always the same for the same inputs."""
    manifest = _read(bundle / "bundle.json")
    calibration = _read(evaluation / "calibration.json")
    outcomes = _read(evaluation / "outcomes.json")
    parts = (
        *_head(manifest),
        *_general(manifest),
        *_development(manifest),
        *_performance(manifest, calibration, outcomes),
        *_rest(),
    )
    return "\n".join(parts) + "\n"


def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return content


def _name(manifest: Mapping[str, Any]) -> str:
    return f"{manifest['name']} {manifest['version']} ({manifest['profile']})"


def _table(heads: Sequence[str], rows: Iterator[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(str(cell) for cell in row)} |"
    yield ""


def _head(manifest: Mapping[str, Any]) -> Iterator[str]:
    yield "# Technical file"
    yield ""
    yield (
        f"Of {_name(manifest)}, by the points of Annex IV of [Regulation (EU) 2024/1689]"
        "(https://eur-lex.europa.eu/eli/reg/2024/1689/oj) (OJ L, 12 July 2024). Written by "
        f"`{COMMAND}` from the bundle's manifest and the results in `docs/evaluation`; do not edit "
        "it. It is material for a provider's file, not a declaration of conformity: nobody has "
        "assessed Rapport."
    )
    yield ""


def _general(manifest: Mapping[str, Any]) -> Iterator[str]:
    window = manifest["window"]
    languages = ", ".join(manifest.get("languages") or ["en"])
    yield from ("## 1 General description", "")
    yield from _table(
        ("point", "fact"),
        iter(
            [
                (
                    "1(a) purpose",
                    "to show supervisors, trainers and researchers how empathy is expressed in a "
                    "conversation, and where to look; not a diagnosis, risk assessment or "
                    "performance rating",
                ),
                ("1(a) version", f"{_name(manifest)}; language: {languages}"),
                (
                    "1(b), 1(c) interaction",
                    "events, topics, API: [architecture](../architecture.md)",
                ),
                (
                    "1(d) form",
                    "Python package, container image, Helm chart: [operations](../operations.md)",
                ),
                (
                    "1(e) hardware",
                    "one processor core, or an NVIDIA GPU: [performance](../performance.md)",
                ),
                ("1(f), 1(g) interface", "[the console](../console.md)"),
                ("1(h) instructions", "[instructions for use](instructions.md)"),
                (
                    "input",
                    f"the text of a turn with {window['before']} turns before and "
                    f"{window['after']} after; no voice, picture or rhythm of typing",
                ),
            ]
        ),
    )
    yield from _table(
        ("output", "kind", "of turns by", "labels"),
        (
            (
                head["name"],
                head.get("dimension", "expressed"),
                ", ".join(head["roles"]),
                ", ".join(label.replace("_", " ") for label in head["labels"]),
            )
            for head in manifest["heads"]
        ),
    )
    yield (
        "Outputs of the kinds client, outcome and perceived can be switched off by "
        "[`restricted_outputs`](../security.md#restricted-outputs) or a [policy](../policies.md). "
        "Sessions also have an empathy index, a low-empathy risk ([method](../low-empathy.md)) "
        f"and, in some domains, predicted outcomes: {', '.join(sorted(manifest['outcomes']))}."
    )
    yield ""


def _development(manifest: Mapping[str, Any]) -> Iterator[str]:
    training = manifest["training"]
    yield from ("## 2 Development", "")
    yield (
        f"2(a)-(c). A fine-tuned encoder ({training['base_model']}) and task heads, "
        f"{training['parameters'] / 1e6:.1f} million parameters, trained by "
        f"`{training['command']}` (seed {training['seed']}); a second encoder reads an answer "
        "together with what it answers ([answers](../answers.md)). Choices and rejected ones: "
        "[decisions](../decisions/0001-encode-once.md), [evaluation](../evaluation.md)."
    )
    yield ""
    yield "2(d). Corpora of the encoder and its heads; [datasheets](../datasheets/index.md) of all:"
    yield ""
    yield from _table(
        ("corpus", "conversations", "labelled turns", "licence"),
        (
            (each["name"], each["items"], each["turns"], each["licence"])
            for each in training["data"]
        ),
    )
    for line in (
        "2(e). Human oversight: [instructions for use](instructions.md#oversight).",
        "2(f). Predetermined changes: `rapport bundle adapt` fits calibration, thresholds and "
        "references to an installation, and writes a new bundle only if it is better on held-out "
        "judgements ([adaptation](../adaptation.md)); `rapport bundle promote` puts it in force.",
        f"2(g). Tests: {training['split']}; {training['split_sizes']['train']} conversations to "
        f"train, {training['split_sizes']['test']} to test. Results below.",
        "2(h). Security: [threat model](../threat-model.md), which names a test for each threat.",
    ):
        yield from (line, "")


def _performance(
    manifest: Mapping[str, Any], calibration: Mapping[str, Any], outcomes: Mapping[str, Any]
) -> Iterator[str]:
    yield from ("## 3 Capabilities, limits and control", "")
    yield "This bundle on its own held-out turns, per cent:"
    yield ""
    tested = manifest["metrics"]["test"]
    rounded = ("majority", "accuracy", "macro_f1", "mcc", "ece_after")
    yield from _table(
        (
            "head",
            "turns",
            "always the majority",
            "accuracy",
            "macro-F1",
            "MCC",
            "calibration error",
        ),
        (
            (name, row["n"], *(f"{100 * row[key]:.1f}" for key in rounded))
            for name, row in tested.items()
        ),
    )
    folds = len(calibration["folds"])
    yield (
        f"Over {folds} folds, the largest calibration error of a head is "
        f"{100 * calibration['largest_ece']:.1f} per cent (`docs/evaluation/calibration.json`). "
        "Predicted outcomes, of sessions held out (`docs/evaluation/outcomes.json`):"
    )
    yield ""
    yield from _table(
        ("outcome", "domain", "sessions", "with it", "AUROC [95 %]"),
        (
            (name, row["domain"], row["sessions"], row["positive"], _interval(row["auroc"]))
            for name, row in outcomes["outcomes"].items()
            if name in manifest["outcomes"]
        ),
    )
    written = manifest["metrics"]["crisis"]["written"]
    listed = written["detectors"]["list"]
    yield (
        f"Crisis language, on {written['turns']} written turns of which {written['crisis']} are of "
        f"a crisis: the list of phrases finds {_interval(listed['recall'])} of them, with a "
        f"precision of {_interval(listed['precision'])}. It misses most; its silence says nothing "
        "([crisis language](../crisis.md))."
    )
    yield ""
    yield (
        "Limits: English only; learned from Reddit posts, paid volunteers' chats and acted "
        "demonstrations; groups of speakers were not compared, because the corpora do not describe "
        "them; perceived values are weak. Foreseeable misuse: "
        "[ethics](../ethics.md#uses-to-refuse)."
    )
    yield ""


def _interval(found: Any) -> str:
    if isinstance(found, dict):
        return f"{found['value']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"
    return f"{found:.2f}"


def _rest() -> Iterator[str]:
    for title, body in (
        (
            "4 Metrics",
            "Why these metrics, and what counting words and length reach: "
            "[evaluation](../evaluation.md), [low empathy](../low-empathy.md).",
        ),
        ("5 Risk management", "[Risk register](risks.md)."),
        (
            "6 Changes",
            "The changelog of each release; the id of the bundle stands in every score, and a "
            "trend breaks where it changes.",
        ),
        (
            "7 Standards",
            "No harmonised standard was applied. [Mapping](frameworks.md) to ISO/IEC 42001, NIST "
            "AI RMF and HIPAA.",
        ),
        ("8 Declaration of conformity", "None. A provider draws it up (Article 47)."),
        ("9 Post-market monitoring", "[Plan and incident form](post-market.md)."),
    ):
        yield from (f"## {title}", "", body, "")


def main(
    out: Annotated[Path, typer.Option(help="Where to write it.")] = FILE,
    bundle: Annotated[Path, typer.Option(help="A bundle's folder.")] = BUNDLE,
) -> None:
    """Write the technical file of a bundle."""
    out.write_text(text(bundle), "utf-8")
    print(out)


if __name__ == "__main__":
    typer.run(main)
