"""`python -m models.fit.distress fit` and `evaluate`: the distress probe on client turns.

The probe is a logistic regression over the two vectors that the bundle's encoder computes for a
turn. It learns from EmpatheticDialogues (Rashkin et al. 2019), where people describe a situation in
which they felt a given emotion: the opening turns of nine emotions of fear, grief and shame against
those of thirteen emotions without distress, and against what users say in service dialogues (Sun et
al. 2021), which is mostly neutral. Anger, disgust and mixed emotions are left out of both classes.

It detects distress in the wording, not in the writer; `evaluate` prints its weak correlation with
self-reported intensity of emotion (ESConv) and distress (Buechel et al. 2018).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from models.bundle import CARD, MANIFEST, sha256, write_manifest
from models.card import model_card
from models.data.corpora import Corpus, read_rows, resolve_data_dir
from models.data.rated_sessions import load_sessions
from models.data.registry import CORPORA
from models.data.split import part_of
from models.fit.standardised import centre_and_divisor
from models.labels import CLIENT
from stream_app.contracts.events import Role
from stream_app.contracts.scores import Stage
from stream_app.core.measures.window import ScoringRequest, WindowTurn
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.devices.probe import TurnProbe
from stream_app.inference.scorer import OnnxScorer
from stream_app.recordings.event_files import sample_events, sample_sessions

FILE = "distress.npy"
SEED = 7
STRENGTH = 0.03
"""Inverse L2 penalty on standardised vectors; 0.003 to 0.3 give the same AUROC within 0.005."""
THRESHOLD = 0.8
DISTRESS = (
    "afraid", "anxious", "apprehensive", "ashamed", "devastated", "guilty", "lonely", "sad",
    "terrified",
)  # fmt: skip
NO_DISTRESS = (
    "anticipating", "caring", "confident", "content", "excited", "faithful", "grateful", "hopeful",
    "impressed", "joyful", "prepared", "proud", "trusting",
)  # fmt: skip
ESSAYS = Corpus(
    "news_reactions",
    "Empathic reactions to news (Buechel et al. 2018)",
    ("news_reactions.jsonl.gz",),
    "https://github.com/wwbp/empathic_reactions",
    "CC BY 4.0",
)
"""For evaluation only."""
TALK = ("change", "neutral", "sustain")
NOW = datetime(2026, 1, 5, tzinfo=UTC)
OPENINGS, SERVICE_TURNS, CHATS = 9_000, 3_000, 400

app = typer.Typer(add_completion=False)
Bundle = Annotated[Path, typer.Option(help="Folder of the bundle.")]
Data = Annotated[Path | None, typer.Option(help="Folder with the corpora.")]
DEFAULT = Path("stream_app/bundles/default")
Floats = NDArray[np.float64]


class Encoded:
    """Encodes texts into the vectors that a window stores."""

    def __init__(self, bundle: Path) -> None:
        self._scorer = OnnxScorer(bundles.load(bundle))

    def vectors(self, texts: list[str]) -> Floats:
        """One row a text."""
        encoded = (
            item
            for start in range(0, len(texts), 256)
            for item in self._scorer.encode(texts[start : start + 256])
        )
        rows = [np.frombuffer(item.vectors, dtype=np.float16) for item in encoded]
        return np.stack(rows).astype(np.float64)

    def heads(self, texts: list[str]) -> dict[str, list[float]]:
        """The bundle's head outputs for the texts as client turns without context."""
        found: dict[str, list[float]] = {name: [] for name in ("dissatisfaction", *TALK)}
        for start in range(0, len(texts), 256):
            encoded = self._scorer.encode(texts[start : start + 256])
            requests = [
                ScoringRequest(
                    WindowTurn(0, Role.CLIENT, NOW, 0, 0, e.vectors, {}), Stage.PROVISIONAL, []
                )
                for e in encoded
            ]
            for scores in self._scorer.score(requests):
                found["dissatisfaction"].append(scores.client["satisfaction"]["no"])
                for name in TALK:
                    found[name].append(scores.client["talk_type"][name])
        return found


class Worded(NamedTuple):
    """A text, the emotion it was written for, and whether it is held out for testing."""

    emotion: str
    text: str
    test: bool


def openings(data_dir: Path) -> list[Worded]:
    """Read the opening turns of EmpatheticDialogues."""
    corpus = CORPORA["empathetic_dialogues"]
    wanted = {*DISTRESS, *NO_DISTRESS}
    found = [
        Worded(row["emotion"], row["utterances"][0]["text"], _is_test(row["conversation_id"]))
        for row in read_rows(corpus, corpus.files[0], data_dir)
        if row["emotion"] in wanted and row["utterances"]
    ]
    order = np.random.default_rng(SEED).permutation(len(found))[:OPENINGS]
    return [found[i] for i in order]


def service_turns(data_dir: Path) -> list[Worded]:
    """Read users' turns of service dialogues."""
    found = [
        Worded("service", turn.text, _is_test(session.key))
        for session in load_sessions(data_dir)
        if session.source in ("sgd", "mwoz", "ccpe", "redial")
        for turn in session.turns
        if turn.role == CLIENT
    ]
    order = np.random.default_rng(SEED).permutation(len(found))[:SERVICE_TURNS]
    return [found[i] for i in order]


def fit_probe(x: Floats, items: Sequence[Worded]) -> TurnProbe:
    """Fit a logistic regression on the items' vectors [items, size]."""
    y = np.array([item.emotion in DISTRESS for item in items])
    centre, divisor = centre_and_divisor(x)
    found = LogisticRegression(C=STRENGTH, max_iter=2000).fit((x - centre) / divisor, y)
    weights = found.coef_[0] / divisor
    return TurnProbe(weights, float(found.intercept_[0] - weights @ centre))


@app.command()
def fit(bundle: Bundle = DEFAULT, data_dir: Data = None) -> None:
    """Fit the probe and write it into the bundle."""
    folder = resolve_data_dir(data_dir)
    items = [item for item in [*openings(folder), *service_turns(folder)] if not item.test]
    probe = fit_probe(Encoded(bundle).vectors([item.text for item in items]), items)
    np.save(bundle / FILE, np.append(probe.weights, probe.bias).astype(np.float32))
    content = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    content["distress"] = {"file": FILE}
    content["files"][FILE] = sha256(bundle / FILE)
    write_manifest(bundle, content)
    distressed = sum(item.emotion in DISTRESS for item in items)
    print(f"fitted on {len(items)} turns, {distressed} of them distressed")
    content["metrics"]["distress"] = measure(bundle, folder)
    write_manifest(bundle, content)
    (bundle / CARD).write_text(model_card(content), encoding="utf-8")
    print(json.dumps(content["metrics"]["distress"], indent=1))


@app.command()
def evaluate(bundle: Bundle = DEFAULT, data_dir: Data = None) -> None:
    """Print the probe's figures on turns held out from its training."""
    print(json.dumps(measure(bundle, resolve_data_dir(data_dir)), indent=1))


def measure(bundle: Path, data_dir: Path) -> dict[str, Any]:
    """Compute the figures of docs/rules.md."""
    encoded, probe = Encoded(bundle), TurnProbe.read(bundle / FILE)
    items = [item for item in [*openings(data_dir), *service_turns(data_dir)] if item.test]
    p = probe.probabilities(encoded.vectors([text for _, text, _ in items]))
    kinds = np.array([emotion for emotion, _, _ in items])
    bad = np.isin(kinds, DISTRESS)
    good = np.isin(kinds, NO_DISTRESS)
    emotional = bad | good
    return {
        "openings": {
            "n": int(emotional.sum()),
            "auroc": _rounded(roc_auc_score(bad[emotional], p[emotional])),
            "auroc_of_the_heads": {
                name: _rounded(roc_auc_score(bad[emotional], np.array(values)[emotional]))
                for name, values in encoded.heads([text for _, text, _ in items]).items()
            },
            "distress_found": _rounded((p[bad] >= THRESHOLD).mean()),
            "no_distress_found": _rounded((p[good] >= THRESHOLD).mean()),
            "by_emotion": {
                name: _rounded((p[kinds == name] >= THRESHOLD).mean())
                for name in sorted({*DISTRESS, *NO_DISTRESS})
            },
        },
        "service_turns": {
            "n": int((kinds == "service").sum()),
            "found": _rounded((p[kinds == "service"] >= THRESHOLD).mean()),
        },
        "esconv": _esconv(encoded, probe, data_dir),
        "essays": _essays(encoded, probe, data_dir),
        "samples": _samples(encoded, probe),
    }


def _esconv(encoded: Encoded, probe: TurnProbe, data_dir: Path) -> dict[str, Any]:
    """Figures for the seeker's 1-5 intensity of emotion before the chat, from its first turns."""
    intensity: list[int] = []
    chats: list[list[str]] = []
    for row in read_rows(CORPORA["esconv"], "esconv_train.jsonl.gz", data_dir):
        given = row["survey_score"]["seeker"].get("initial_emotion_intensity")
        said = [turn["text"] for turn in row["dialog"] if turn["speaker"] == "seeker"]
        if given and said and len(chats) < CHATS:
            intensity.append(int(given))
            chats.append(said[:8])
    p = np.split(
        probe.probabilities(encoded.vectors([text for chat in chats for text in chat])),
        np.cumsum([len(chat) for chat in chats])[:-1],
    )
    strongest = np.array([part.max() for part in p])
    ends = np.cumsum([len(chat) for chat in chats])[:-1]
    heads = encoded.heads([text for chat in chats for text in chat])
    return {
        "chats": len(chats),
        "turns_found": _rounded((np.concatenate(p) >= THRESHOLD).mean()),
        "chats_with_one": _rounded((strongest >= THRESHOLD).mean()),
        "spearman_strongest_and_intensity": _rounded(spearmanr(strongest, intensity)[0]),
        "spearman_mean_and_intensity": _rounded(
            spearmanr([part.mean() for part in p], intensity)[0]
        ),
        "spearman_of_the_heads_means": {
            name: _rounded(
                spearmanr([part.mean() for part in np.split(np.array(values), ends)], intensity)[0]
            )
            for name, values in heads.items()
        },
    }


def _essays(encoded: Encoded, probe: TurnProbe, data_dir: Path) -> dict[str, Any]:
    """Figures for the 1-7 distress that writers of essays report after reading news."""
    rows = list(read_rows(ESSAYS, ESSAYS.files[0], data_dir))
    p = probe.probabilities(encoded.vectors([row["essay"] for row in rows]))
    return {"n": len(rows), "spearman": _rounded(spearmanr(p, [r["distress"] for r in rows])[0])}


def _samples(encoded: Encoded, probe: TurnProbe) -> dict[str, Any]:
    """Figures for the sample sessions."""
    found = {}
    for path in sample_sessions():
        if path.stem.startswith("broken"):
            continue
        events = sample_events(path, "s", NOW, 1.0)
        bodies = [json.loads(event.value) for event in events]
        said = [body["text"] for body in bodies if body.get("role") == "client"]
        p = probe.probabilities(encoded.vectors(said))
        found[path.stem] = f"{int((p >= THRESHOLD).sum())} of {len(said)}"
    return found


def _is_test(key: str) -> bool:
    return part_of(key, SEED) == "test"


def _rounded(value: float) -> float:
    return round(float(value), 3)


if __name__ == "__main__":
    app()
