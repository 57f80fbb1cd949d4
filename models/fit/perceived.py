"""`python -m models.fit.perceived --model FOLDER`: fit the outcome heads on a frozen model.

Second stage of training. The encoder and the fusion are frozen; the heads of engagement,
understanding, sympathy, helpfulness (perceived empathy, Xu & Jiang 2024, section 3) and of the
client's satisfaction are fitted to listeners' ratings (`models.model.multiple_instance`) and
written into the folder's model.pt. The inputs of `models.outcomes` go into outcomes.npz: every
head's logits on every turn, and for training conversations also the logits of heads fitted without
them.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from torch import nn

from models.data.corpora import Conversation, resolve_data_dir
from models.data.rated_sessions import RatedSession, load_sessions
from models.data.split import DESCRIPTION, fold_of, fold_part, key_of, part_of
from models.fit.turn_features import VIEWS, TurnFeatures, View, turn_features
from models.labels import CLIENT, COUNSELLOR, HEADS, OUTCOME_HEADS
from models.model import multitask
from models.model.multiple_instance import Bag, Fit, bags_of, fit_heads
from models.model.multitask import MultitaskModel

SERVICE_DIALOGUES = 150
"""Limit per service corpus: the dialogues are long and alike, and half of their turns are neutral.
"""
INNER_FOLDS = 5
OUTCOMES = "outcomes.npz"
FOLD = re.compile(r"fold (\d+) of (\d+)")


@dataclass(frozen=True)
class Share:
    """The conversations a model may be trained on: all, nine tenths, or all but one fold."""

    seed: int
    fold: int | None = None
    folds: int = 1
    tenth: bool = False

    def trains(self, key: str) -> bool:
        """Whether the conversation with this key is in the training part."""
        if self.fold is not None:
            return fold_part(key, self.fold, self.folds, self.seed) == "train"
        return not self.tenth or part_of(key, self.seed) == "train"

    def inner(self, key: str) -> int:
        """The inner part in which this training conversation is left out."""
        return fold_of(key, self.seed, self.folds if self.fold is not None else INNER_FOLDS)


def share_of(about: dict[str, Any]) -> Share:
    """Read the share from a model's training.json.

    >>> share_of({"split": "fold 2 of 5", "seed": 17})
    Share(seed=17, fold=2, folds=5, tenth=False)
    """
    seed, words = int(about["seed"]), str(about["split"])
    found = FOLD.fullmatch(words)
    if found:
        return Share(seed, int(found[1]), int(found[2]))
    return Share(seed, tenth=words == DESCRIPTION)


def left_out_of(conversations: list[Conversation], training: dict[str, Any]) -> list[Conversation]:
    """The model's test part: its fold, or the tenth that `models.fit.train` leaves out."""
    share = share_of(training)
    return [
        item
        for item in conversations
        if item.part == "test" or (item.part is None and not share.trains(key_of(item)))
    ]


@dataclass
class Outcomes:
    """A model's outputs for every turn of the sessions.

    `logits[view][head]` is float32 [turns, labels]; `unseen` has the same for the outcome heads,
    fitted without the turn's conversation (outside the training part these are the model's own).
    `keys` and `starts` [sessions + 1] identify the rows of each session.
    """

    keys: list[str]
    starts: NDArray[np.int64]
    logits: dict[View, dict[str, NDArray[np.float32]]]
    unseen: dict[View, dict[str, NDArray[np.float32]]]

    def write(self, path: Path) -> None:
        """Save in one file."""
        arrays: dict[str, Any] = {"keys": np.array(self.keys), "starts": self.starts}
        for part, tables in (("logits", self.logits), ("unseen", self.unseen)):
            for view, heads in tables.items():
                arrays |= {f"{part}/{view}/{head}": values for head, values in heads.items()}
        np.savez(path, **arrays)

    @classmethod
    def read(cls, path: Path) -> Outcomes:
        """Load what `write` saved."""
        with np.load(path) as file:
            tables: dict[str, dict[View, dict[str, NDArray[np.float32]]]] = {
                part: {view: {} for view in VIEWS} for part in ("logits", "unseen")
            }
            for name in file.files:
                if name.count("/") == 2:
                    part, view, head = name.split("/")
                    tables[part]["final" if view == "final" else "provisional"][head] = file[name]
            return cls(file["keys"].tolist(), file["starts"], tables["logits"], tables["unseen"])


def second_stage(
    model: MultitaskModel,
    sessions: list[RatedSession],
    features: TurnFeatures,
    share: Share,
    recipe: Fit,
    *,
    inner: bool = True,
) -> Outcomes:
    """Fit the outcome heads in place; return the logits of all heads for all turns.

    Without `inner` the training conversations get no logits of heads fitted without them.
    """
    bags = [
        bag for bag in bags_of(sessions, features.starts) if share.trains(sessions[bag.session].key)
    ]
    for head, learned in fit_heads(features, bags, recipe).items():
        learned.write(cast("nn.Linear", model.head.tasks[head]))
    roles = np.array([turn.role for session in sessions for turn in session.turns])
    logits = {view: all_logits(model, features, view, roles) for view in VIEWS}
    unseen: dict[View, dict[str, NDArray[np.float32]]] = {
        view: {head: logits[view][head].copy() for head in OUTCOME_HEADS} for view in VIEWS
    }
    parts = sorted({share.inner(session.key) for session in sessions}) if inner else []
    for left_out in parts:
        members = [
            number
            for number, session in enumerate(sessions)
            if share.trains(session.key)
            and share.inner(session.key) == left_out
            and session.source != "annomi"
        ]
        if members:
            out = set(members)
            kept = [bag for bag in bags if _inner(share, sessions, bag) != left_out]
            rows = np.concatenate([np.array(features.rows(number)) for number in sorted(out)])
            print(f"inner part {left_out}", flush=True)
            for head, learned in fit_heads(features, kept, recipe).items():
                for view in VIEWS:
                    odds = learned.log_odds(features.fused[view][rows])
                    unseen[view][head][rows] = np.stack([np.zeros_like(odds), odds], axis=1)
    return Outcomes([session.key for session in sessions], features.starts, logits, unseen)


def _inner(share: Share, sessions: list[RatedSession], bag: Bag) -> int:
    return share.inner(sessions[bag.session].key)


@torch.inference_mode()
def all_logits(
    model: MultitaskModel, features: TurnFeatures, view: View, roles: NDArray[np.int64]
) -> dict[str, NDArray[np.float32]]:
    """Logits [turns, labels] of every head; zeros for turns of the other role."""
    model.eval()
    fused = features.fused[view]
    found = {head.name: np.zeros((len(fused), len(head.labels)), np.float32) for head in HEADS}
    for role in (CLIENT, COUNSELLOR):
        own = np.flatnonzero(roles == role)
        for first in range(0, len(own), 8192):
            rows = own[first : first + 8192]
            both, alone = (torch.from_numpy(part[rows]).float() for part in (fused, features.alone))
            for name, logits in model.head.read(both, alone, role).items():
                found[name][rows] = logits.numpy()
    return found


def main(
    model: Annotated[Path, typer.Option(help="A trained model's folder.")] = Path("build/model"),
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    cache: Annotated[Path, typer.Option(help="Cache folder for the turns' features.")] = Path(
        "build/outcomes"
    ),
    service_dialogues: Annotated[
        int, typer.Option(help="Dialogues of each service corpus.")
    ] = SERVICE_DIALOGUES,
    inner: Annotated[
        bool, typer.Option(help="Also fit the inner parts that models.outcomes needs.")
    ] = True,
    threads: int = 2,
) -> None:
    """Fit the outcome heads of one model and write them into its folder."""
    torch.set_num_threads(threads)
    started = time.monotonic()
    trained, tokenizer = multitask.load(model)
    about_file = model / "training.json"
    about = json.loads(about_file.read_text(encoding="utf-8"))
    share = share_of(about)
    sessions = load_sessions(resolve_data_dir(data_dir), service_dialogues)
    features = turn_features(trained, tokenizer, sessions, cache)
    print(f"features of {len(features.fused['final'])} turns, {_minutes(started)}", flush=True)
    recipe = Fit()
    outcomes = second_stage(trained, sessions, features, share, recipe, inner=inner)
    outcomes.write(model / OUTCOMES)
    torch.save(trained.state_dict(), model / "model.pt")
    about["outcomes"] = {
        "recipe": asdict(recipe),
        "service_dialogues": service_dialogues,
        "sessions": sum(share.trains(session.key) for session in sessions),
        "targets": TARGETS,
    }
    about_file.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    print(f"outcome heads written to {model}, {_minutes(started)}", flush=True)


TARGETS = {
    "engagement": "length of the client's next reply against its usual reply, 0 for none "
    "(ESConv, service dialogues)",
    "understanding": "relevance as the seeker rated it after the chat (ESConv)",
    "sympathy": "empathy as the seeker rated it after the chat (ESConv)",
    "helpfulness": "fall of the seeker's emotion intensity over the chat (ESConv), feedback on the "
    "supporter's last turns (failed ESConv chats), users' satisfaction after a system turn "
    "(service dialogues)",
    "satisfaction": "whether the whole chat went well (empathy rated 4 or 5) or not (1, 2, or "
    "failed; ESConv)",
}
"""Source of each head's labels, as worded in the model card."""


def _minutes(started: float) -> str:
    return f"{(time.monotonic() - started) / 60:.1f} minutes"


if __name__ == "__main__":
    typer.run(main)
