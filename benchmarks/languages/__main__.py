"""Prints how many turns of each language and corpus the detector leaves unscored."""

from collections import defaultdict
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.languages.refusals import (
    false_refusals,
    language_of,
    long_turns,
    refused,
    sentences,
)
from benchmarks.report.markdown import table


def main(
    data_dir: Annotated[Path | None, typer.Option(help="A folder of English corpora.")] = None,
) -> None:
    """Print the tables of docs/architecture.md."""
    by_language: dict[str, list[str]] = defaultdict(list)
    for language, text in sentences():
        by_language[language].append(text)
    rows = [
        [
            language,
            str(len(texts)),
            str(sum(map(refused, texts))),
            str(sum(language_of(text).name == language for text in texts)),
        ]
        for language, texts in by_language.items()
    ]
    typer.echo(table(["language", "turns", "not scored", "named"], rows))
    if data_dir is None:
        return
    found = []
    for pattern in ("plain_*", "crisis_*", "annomi*", "esconv_failed*"):
        for file in sorted(data_dir.glob(f"{pattern}.jsonl.gz")):
            turns = long_turns(file)
            lost = false_refusals(turns)
            share = f"{100 * len(lost) / len(turns):.2f}"
            found.append([file.name.partition(".")[0], str(len(turns)), str(len(lost)), share])
    typer.echo("")
    typer.echo(table(["corpus", "turns of 5 words or more", "not scored", "%"], found))


if __name__ == "__main__":
    typer.run(main)
