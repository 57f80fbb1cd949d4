"""A fold model's scores for every turn of the benchmark, cached in the model's folder.

The heads are the fold model's, the distress probe is fitted on its vectors, and calibration comes
from the other folds (`models.fit.calibrate.crossfitted`), so that none of them has seen the
sessions that they score.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.data.rated_sessions import RatedSession
from models.evaluate.folds import weights_digest
from models.fit.distress import fit_probe, openings, service_turns
from models.fit.perceived import all_logits
from models.fit.turn_features import VIEWS, View, encode_texts, turn_features
from models.labels import HEADS
from models.model import multitask

PROBE_TURNS = 6_000
"""Number of turns for fitting a fold's distress probe."""


@dataclass
class Scored:
    """Logits of all heads and the distress probability, for concatenated sessions.

    `starts` [sessions + 1] are rows; `logits[view][head]` float32 [turns, labels]; `distress`
    float32 [turns] in [0, 1], for client and counsellor turns alike.
    """

    starts: NDArray[np.int64]
    logits: dict[View, dict[str, NDArray[np.float32]]]
    distress: NDArray[np.float32]

    def write(self, path: Path) -> None:
        """Save in one file."""
        arrays: dict[str, Any] = {"starts": self.starts, "distress": self.distress}
        for view, heads in self.logits.items():
            arrays |= {f"{view}/{head}": values for head, values in heads.items()}
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **arrays)

    @classmethod
    def read(cls, path: Path) -> Scored:
        """Load what `write` saved."""
        with np.load(path) as file:
            logits: dict[View, dict[str, NDArray[np.float32]]] = {
                view: {head.name: file[f"{view}/{head.name}"] for head in HEADS} for view in VIEWS
            }
            return cls(file["starts"], logits, file["distress"])


def score(model_folder: Path, sessions: list[RatedSession], data_dir: Path) -> Scored:
    """Score the sessions, or read the cached scores of exactly these sessions."""
    file = model_folder / f"construct-{_fingerprint(model_folder, sessions)}.npz"
    if file.is_file():
        return Scored.read(file)
    model, tokenizer = multitask.load(model_folder)
    features = turn_features(model, tokenizer, sessions)
    roles = np.array([turn.role for session in sessions for turn in session.turns])
    logits = {view: all_logits(model, features, view, roles) for view in VIEWS}
    items = [*openings(data_dir), *service_turns(data_dir)]
    items = [item for item in items if not item.test]
    items = items[:: max(1, len(items) // PROBE_TURNS)]
    texts = [item.text for item in items]
    probe = fit_probe(_flat(encode_texts(model, tokenizer, texts)), items)
    said = [turn.text for session in sessions for turn in session.turns]
    p = probe.probabilities(_flat(encode_texts(model, tokenizer, said)))
    found = Scored(features.starts, logits, p.astype(np.float32))
    found.write(file)
    return found


def _flat(vectors: NDArray[np.float16]) -> NDArray[np.float64]:
    return vectors.reshape(len(vectors), -1).astype(np.float64)


def _fingerprint(model_folder: Path, sessions: list[RatedSession]) -> str:
    """A hash of the sessions and of the model without its outcome heads."""
    digest = hashlib.sha256(weights_digest(model_folder / "model.pt").encode())
    for session in sessions:
        digest.update(session.key.encode())
        for turn in session.turns:
            digest.update(f"{turn.role}{turn.text}\n".encode())
    return digest.hexdigest()[:16]
