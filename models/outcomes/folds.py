"""Fold models' outputs for every rated session, as inputs of the outcome models.

Outcome heads (`models.fit.perceived`) are trained on judgements of sessions, the other heads on
turn labels. For a session in fold k's training part, the outcome heads' outputs therefore come from
heads fitted without it (`Outcomes.unseen`), and the others' from the fold that left the session
out: no output was learned from the session that it describes, nor from fold k's judgements.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.data.rated_sessions import SERVICE, RatedSession, load_sessions
from models.evaluate.ratings import Fold
from models.evaluate.replay import Trajectory, trajectories
from models.fit.perceived import OUTCOMES, SERVICE_DIALOGUES, Outcomes, share_of
from models.fit.turn_features import View
from models.outcomes.labels import SPECS, group_of
from stream_app.inference.bundles.bundle import HeadSpec

SOURCES = {source for spec in SPECS for source in spec.sources}


def load_folds(folder: Path, data_dir: Path) -> tuple[list[RatedSession], list[Fold]]:
    """Load the sessions, and every fold with outcome heads."""
    folds, dialogues = [], SERVICE_DIALOGUES
    for path in sorted(folder.glob(f"*/{OUTCOMES}")):
        about = json.loads((path.parent / "training.json").read_text(encoding="utf-8"))
        dialogues = int(about["outcomes"]["service_dialogues"])
        folds.append(Fold(int(path.parent.name), share_of(about), Outcomes.read(path)))
    if not folds:
        raise SystemExit(
            f"error: no fold in {folder} has {OUTCOMES}: run python -m models.fit.perceived "
            f"--model {folder}/K for each of them"
        )
    sessions = load_sessions(data_dir, dialogues)
    keys = [session.key for session in sessions]
    for fold in folds:
        if fold.outcomes.keys != keys:
            raise SystemExit(f"error: fold {fold.number} was run on other sessions: run it again")
        if not _service_unseen(fold, sessions):
            print(
                f"warning: fold {fold.number} has outcome heads' outputs on service dialogues that "
                "they learned from: run python -m models.fit.perceived again"
            )
    return sessions, folds


def _service_unseen(fold: Fold, sessions: list[RatedSession]) -> bool:
    """Whether the heads were fitted without the fold's service dialogues for training."""
    starts, heads = fold.outcomes.starts, fold.outcomes
    for i, session in enumerate(sessions):
        if session.source in SERVICE and fold.share.trains(session.key):
            rows = slice(starts[i], starts[i + 1])
            seen, unseen = (part["final"]["helpfulness"] for part in (heads.logits, heads.unseen))
            if not np.array_equal(seen[rows], unseen[rows]):
                return True
    return False


@dataclass
class Collected:
    """Feature names; every session's trajectory by fold; and the fold that holds each session out.

    `own`: session -> the fold that leaves it out. `groups` [sessions]: held out together.
    """

    names: list[str]
    by_fold: dict[int, dict[int, Trajectory]]
    own: dict[int, int]
    truth: dict[str, dict[int, bool]]
    groups: list[str]

    def left_out(self) -> dict[int, Trajectory]:
        """Every session's trajectory in the fold that left it out."""
        return {i: found for i, fold in self.own.items() if (found := self.by_fold[fold].get(i))}


def collect(
    sessions: list[RatedSession], folds: list[Fold], manifest: Mapping[str, HeadSpec]
) -> Collected:
    """Run the sessions of all outcomes through the service's pipeline, once for each fold."""
    chosen = [i for i, session in enumerate(sessions) if session.source in SOURCES]
    own = {
        i: fold.number
        for fold in reversed(folds)
        for i in chosen
        if not fold.share.trains(sessions[i].key)
    }
    names: list[str] = []
    by_fold = {}
    for fold in folds:
        seen = outputs(fold, folds, own)
        names, found = trajectories(sessions, fold.outcomes.starts, chosen, seen, manifest)
        by_fold[fold.number] = {item.session: item for item in found}
    truth = {
        spec.name: {i: known for i in chosen if (known := spec.truth(sessions[i])) is not None}
        for spec in SPECS
    }
    return Collected(names, by_fold, own, truth, [group_of(session) for session in sessions])


def outputs(
    fold: Fold, folds: list[Fold], own: Mapping[int, int]
) -> dict[View, dict[str, NDArray[np.float32]]]:
    """Logits [turns, labels] by view and head that are valid inputs in fold k."""
    starts = fold.outcomes.starts
    owner = np.repeat([own.get(i, fold.number) for i in range(len(starts) - 1)], np.diff(starts))
    found: dict[View, dict[str, NDArray[np.float32]]] = {}
    for view, heads in fold.outcomes.logits.items():
        unseen = fold.outcomes.unseen[view]
        found[view] = {name: unseen.get(name, logits).copy() for name, logits in heads.items()}
        for other in folds:
            rows = np.flatnonzero(owner == other.number)
            if other is fold or not len(rows):
                continue
            for name, logits in other.outcomes.logits[view].items():
                if name not in unseen:
                    found[view][name][rows] = logits[rows]
    return found
