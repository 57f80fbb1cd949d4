"""Fit the empathy index of a bundle with a reader.

Run as `python -m models.reader.evaluation.index --bundle FOLDER`.

An answer's value is the reader's probability that people would call it good, and EPITOME's levels
for the rest (`SHARE`), less its probability of a lapse (`LAPSE`). The opportunity of a client's
turn is the reader's, too. The references are the bundle's own scores of real sessions;
motivational interviewing keeps the model that was fitted to the quality of its sessions
(`models.construct.fit`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from models.bundle import CARD, MANIFEST, write_manifest
from models.card import model_card
from models.construct.benchmark import DOMAINS, BenchmarkSessions, Known
from models.construct.bundle_scores import score_with_bundle
from models.construct.fit import LABELLED, Part, reference
from models.data.corpora import resolve_data_dir
from models.data.rated_sessions import RatedSession, load_sessions
from stream_app.core.measures.empathy import AnswerModel, DomainEmpathy, EmpathyModel
from stream_app.inference.bundles import bundle as bundles

SHARE = 0.7
"""Weight of the reader's answer; the rest are the mechanisms, as `models.construct` weighs them.

Chosen on held-out voices and chats with `python -m models.reader.blend` (docs/low-empathy.md).
"""
LAPSE = 0.2
"""Weight with which the probability of a lapse is subtracted, chosen as `SHARE` was."""
ANSWERED = 0.25
"""Value from which an opportunity counts as answered.

Of the held-out answers of plainly good sessions 8 % lie below it, of plainly bad ones 55 %
(`python -m models.reader.blend`).
"""
OPPORTUNITY = {"opportunity": 1.0}
ENTER, EXIT = 0.5, 0.4
"""An alert: the recent index is more likely than not below the reference's tenth percentile."""
FLOORS = (0.1, 0.12)
"""Half of those of `models.construct.fit`: plainly good and bad sessions lie .19 apart, not .4."""
FAILED = "esconv_failed"


def drawn(sessions: list[RatedSession], every: int) -> BenchmarkSessions:
    """Every n-th session of each source, but none of the chats that failed."""
    found, seen = BenchmarkSessions(), dict.fromkeys(DOMAINS, 0)
    for session in sessions:
        if session.source == FAILED or session.source not in seen:
            continue
        seen[session.source] += 1
        often = 1 if session.source == "annomi" else every
        if seen[session.source] % often == 0:
            found.add(session, Known("real", DOMAINS[session.source], 0))
    return found


def blended(old: DomainEmpathy) -> AnswerModel:
    """The answer model of a domain: the reader's answer and the mechanisms, less the lapse."""
    mechanisms = {name: old.answer.weights[name] for name in LABELLED}
    return AnswerModel(
        round((1.0 - SHARE) * old.answer.intercept, 4),
        {"answer": SHARE, "lapse": -LAPSE}
        | {name: round((1.0 - SHARE) * weight, 4) for name, weight in mechanisms.items()},
    )


def fitted(old: EmpathyModel, part: Part, unblended: AnswerModel) -> EmpathyModel:
    """The index with new references for every domain."""
    domains = {}
    for name, here in old.domains.items():
        source = msgspec.structs.replace(here, answer=unblended)
        domains[name] = reference(
            name,
            blended(source),
            ANSWERED,
            [part],
            lambda _, known, name=name: known.domain == name,  # type: ignore[misc]
            OPPORTUNITY,
            FLOORS,
        )
    return EmpathyModel(
        domains, old.approaches, old.default, old.change, old.min_answers, ENTER, EXIT
    )


def main(
    bundle: Annotated[Path, typer.Option(help="Folder of the bundle.")] = bundles.DEFAULT_BUNDLE,
    like: Annotated[
        Path, typer.Option(help="Bundle whose weights of the mechanisms are taken.")
    ] = bundles.SHIPPED / "nano",
    every: Annotated[int, typer.Option(help="Score every n-th session of a corpus.")] = 4,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
) -> None:
    """Score real sessions with the bundle and write the index into its manifest."""
    known = bundles.load(like).manifest.empathy
    own = bundles.load(bundle).manifest.empathy
    if known is None or own is None:
        raise SystemExit(f"error: {like} or {bundle} has no empathy index to start from")
    part = score_with_bundle(bundle, drawn(load_sessions(resolve_data_dir(data_dir), 200), every))
    model = fitted(own, part, known.domains[known.default].answer)
    content = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    content["empathy"] = msgspec.to_builtins(model)
    write_manifest(bundle, content)
    (bundle / CARD).write_text(model_card(content), encoding="utf-8")
    print(json.dumps(content["empathy"]["domains"], indent=1))


if __name__ == "__main__":
    typer.run(main)
