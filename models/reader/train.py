"""Train the reader: `python -m models.reader.train --out build/reader`."""

from __future__ import annotations

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from torch import Tensor
from torch.nn import functional
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedTokenizerBase

from models.data.corpora import resolve_data_dir
from models.data.split import fold_of
from models.labels import CLIENT, COUNSELLOR
from models.reader import corpora, mined, written
from models.reader.examples import BINARY, Example, Marks, pairs_of, token_ids
from models.reader.model import GradedResponse, Reader, split

FOLDS = 5
ROLE_WORDS = ("client:", "counsellor:")
"""Words before a turn, in the order of the roles."""
VOICED = ("plain_", "quartets", "edits", "manners", "mined_voices")
"""Prefixes of corpora whose fold is that of their voice."""
SHARES = {
    "snli": 0.5,
    "next_answers": 0.4,
    "eaf_model": 0.5,
    "wassa_chats": 0.5,
    "quartets": 2.0,
    "edits": 2.0,
    "esconv_feedback": 2.0,
    "esconv_areas": 2.0,
    "rated_human": 2.0,
}
"""Passes over a corpus in an epoch, where it is not one."""
WEIGHTS = {"fit": 0.5, "entailed": 0.5, "code": 0.5, "crisis": 1.0}
"""Weights of losses, where they are not one."""
SOFT_HEADS = {COUNSELLOR: ("answer", "fit", "lapse"), CLIENT: tuple(BINARY[1:])}
"""Heads in which a student follows its teacher, by the role of the turn."""
MOST_TAUGHT = 8.0
"""Logits of a teacher are cut here."""
SOFT_WEIGHT = 0.5
"""Weight of a student's distance from its teacher, in each head."""
UNTAUGHT = ("snli", "miti_sentences")
"""Corpora that are no conversations: a teacher's judgement of their answers says nothing."""


@dataclass
class Recipe:
    """Parameters of a training, besides the data."""

    epochs: int = 3
    seed: int = 17
    rate: float = 4e-5
    head_rate: float = 5e-4
    warm_up: float = 0.06
    weight_decay: float = 0.01
    batch: int = 64
    frozen_embeddings: bool = True
    shares: dict[str, float] = field(default_factory=lambda: dict(SHARES))


@dataclass
class Read:
    """An example with its token ids; `start` is where the turn that is read begins."""

    example: Example
    ids: list[int]
    start: int
    soft: dict[str, float] = field(default_factory=dict)
    """A teacher's logits by head."""


def voiced(corpus: str) -> bool:
    """Whether a corpus is held out voice by voice."""
    return corpus.startswith(VOICED)


def fold_number(example: Example, seed: int, voices: list[str]) -> int:
    """The fold whose test part contains the example."""
    if voiced(example.corpus):
        return voices.index(example.key) % FOLDS
    return fold_of(example.key, seed, FOLDS)


def marks_of(encoder: str) -> tuple[Marks, PreTrainedTokenizerBase]:
    """Special tokens and words of an encoder, and its tokeniser."""
    found = AutoTokenizer.from_pretrained(encoder, use_fast=True)
    double = found.sep_token == "</s>"  # noqa: S105  # a special token of the text
    words = [found(name, add_special_tokens=False)["input_ids"] for name in ROLE_WORDS]
    separators = (found.sep_token_id,) * (2 if double else 1)
    return Marks(found.cls_token_id, found.sep_token_id, separators, (words[0], words[1])), found


def tokenised(examples: list[Example], encoder: str) -> list[Read]:
    """Token ids of all examples."""
    marks, found = marks_of(encoder)
    cache: dict[str, list[int]] = {}

    def tokenise(text: str) -> list[int]:
        if text not in cache:
            cache[text] = found(text, add_special_tokens=False)["input_ids"]
        return cache[text]

    return [Read(example, *token_ids(example, tokenise, marks)) for example in examples]


@dataclass
class Batch:
    """Padded inputs and the targets of one step."""

    ids: Tensor
    mask: Tensor
    start: Tensor
    binary: dict[str, tuple[Tensor, Tensor]]
    grades: dict[str, tuple[Tensor, Tensor]]
    code: tuple[Tensor, Tensor]
    entailed: tuple[Tensor, Tensor]
    pairs: dict[str, tuple[Tensor, Tensor, Tensor]]
    soft: dict[str, tuple[Tensor, Tensor]]

    def to(self, device: torch.device) -> Batch:
        """The batch with its tensors on the device."""
        return Batch(**{name: _moved(value, device) for name, value in vars(self).items()})


def _moved(value: Any, device: torch.device) -> Any:  # nested containers
    if isinstance(value, Tensor):
        return value.to(device, non_blocking=True)
    if isinstance(value, dict):
        return {name: _moved(each, device) for name, each in value.items()}
    return tuple(_moved(each, device) for each in value)


def collate(reads: list[Read], padding: int) -> Batch:
    """Pad the ids, and gather targets by head."""
    width = max(len(read.ids) for read in reads)
    ids = np.full((len(reads), width), padding, np.int64)
    mask = np.zeros((len(reads), width), np.int64)
    for row, read in enumerate(reads):
        ids[row, : len(read.ids)] = read.ids
        mask[row, : len(read.ids)] = 1
    examples = [read.example for read in reads]
    binary = {
        head: _rows(
            (row, each.binary[head]) for row, each in enumerate(examples) if head in each.binary
        )
        for head in BINARY
    }
    scales = {each.grade[0] for each in examples if each.grade}
    grades = {
        scale: _rows(
            (row, each.grade[1])
            for row, each in enumerate(examples)
            if each.grade and each.grade[0] == scale
        )
        for scale in sorted(scales)
    }
    found: dict[str, list[tuple[int, int, float]]] = {"answer": [], "fit": []}
    for better, worse in pairs_of(examples):
        kind = "fit" if examples[better].kind == "fit" else "answer"
        found[kind].append((better, worse, examples[better].bias))
    return Batch(
        torch.from_numpy(ids),
        torch.from_numpy(mask),
        torch.tensor([read.start for read in reads]),
        binary,
        grades,
        _rows((row, each.code) for row, each in enumerate(examples) if each.code is not None),
        _rows(
            (row, each.entailed) for row, each in enumerate(examples) if each.entailed is not None
        ),
        {
            kind: (
                torch.tensor([pair[0] for pair in pairs], dtype=torch.long),
                torch.tensor([pair[1] for pair in pairs], dtype=torch.long),
                torch.tensor([pair[2] for pair in pairs], dtype=torch.float),
            )
            for kind, pairs in found.items()
        },
        {
            head: _rows(
                (row, read.soft[head]) for row, read in enumerate(reads) if head in read.soft
            )
            for head in ("answer", "fit", *BINARY)
        },
    )


def _rows(found: Any) -> tuple[Tensor, Tensor]:  # a generator of pairs
    pairs = list(found)
    return (
        torch.tensor([row for row, _ in pairs], dtype=torch.long),
        torch.tensor([value for _, value in pairs]),
    )


def loss_of(logits: Tensor, batch: Batch, scales: GradedResponse) -> Tensor:
    """Sum of the heads' mean losses."""
    heads = split(logits)
    total = logits.new_zeros(())
    for name, (rows, yes) in batch.binary.items():
        if len(rows):
            own = functional.binary_cross_entropy_with_logits(heads[name][rows, 0], yes.float())
            total = total + WEIGHTS.get(name, 1.0) * own
    for scale, (rows, level) in batch.grades.items():
        own = scales(scale, heads["answer"][rows, 0], level.long())
        total = total + len(rows) / 16 * own
    for name, (rows, label) in (("code", batch.code), ("entailed", batch.entailed)):
        if len(rows):
            own = functional.cross_entropy(heads[name][rows], label.long())
            total = total + WEIGHTS[name] * own
    for kind, (better, worse, bias) in batch.pairs.items():
        if len(better):
            margin = heads[kind][better, 0] - heads[kind][worse, 0]
            own = -functional.logsigmoid(margin + bias).mean()
            total = total + WEIGHTS.get(kind, 1.0) * own
    for head, (rows, logit) in batch.soft.items():
        if len(rows):
            total = total + SOFT_WEIGHT * _distance(head, heads[head][rows, 0], logit.float())
    return total


def _distance(head: str, own: Tensor, taught: Tensor) -> Tensor:
    """Between logits: of the latent traits by Huber's loss, of probabilities by cross-entropy."""
    if head in BINARY:
        return functional.binary_cross_entropy_with_logits(own, taught.sigmoid())
    return functional.huber_loss(own, taught)


def epoch(reads: list[Read], recipe: Recipe, number: int) -> list[list[Read]]:
    """Batches of one epoch: pairs stay together, and rows of similar length meet."""
    chance = random.Random(f"{recipe.seed}:{number}")  # noqa: S311  # an order, no secret
    units: dict[str, list[Read]] = {}
    for place, read in enumerate(reads):
        units.setdefault(read.example.pair or str(place), []).append(read)
    by_corpus: dict[str, list[list[Read]]] = {}
    for unit in units.values():
        by_corpus.setdefault(unit[0].example.corpus, []).append(unit)
    drawn: list[list[Read]] = []
    for corpus in sorted(by_corpus):
        own, share = by_corpus[corpus], recipe.shares.get(corpus, 1.0)
        drawn += own * int(share)
        drawn += chance.sample(own, round(len(own) * (share - int(share))))
    chance.shuffle(drawn)
    batches: list[list[Read]] = []
    for begin in range(0, len(drawn), 40 * recipe.batch):
        near = sorted(
            drawn[begin : begin + 40 * recipe.batch],
            key=lambda unit: max(len(read.ids) for read in unit) + chance.random() * 24,
        )
        current: list[Read] = []
        for unit in near:
            current += unit
            if len(current) >= recipe.batch:
                batches.append(current)
                current = []
        if current:
            batches.append(current)
    chance.shuffle(batches)
    return batches


def new_reader(encoder: str, recipe: Recipe) -> Reader:
    """A reader on a pretrained encoder, in float32."""
    config = AutoConfig.from_pretrained(encoder)
    options = {"add_pooling_layer": False}
    backbone = AutoModel.from_pretrained(encoder, dtype=torch.float32, **options)
    if recipe.frozen_embeddings:
        backbone.embeddings.word_embeddings.weight.requires_grad = False
    return Reader(backbone, config.hidden_size)


def taught(reads: list[Read], files: list[Path]) -> list[Read]:
    """The reads with the mean logits of teachers, whose files hold one row for each read.

    A row of NaN is a read that a teacher left out; it has no logits.

    Raises:
        ValueError: a file is of other reads.

    """
    logits = np.mean([np.load(file)["logits"].astype(np.float32) for file in files], 0)
    if len(logits) != len(reads):
        message = f"the teachers judged {len(logits)} turns, and there are {len(reads)}"
        raise ValueError(message)
    heads = split(torch.from_numpy(logits.clip(-MOST_TAUGHT, MOST_TAUGHT)))
    return [
        replace(read, soft={head: float(heads[head][place, 0]) for head in own})
        if (own := _followed(read.example)) and np.isfinite(logits[place]).all()
        else read
        for place, read in enumerate(reads)
    ]


def _followed(example: Example) -> tuple[str, ...]:
    return () if example.corpus in UNTAUGHT else SOFT_HEADS[example.role]


def fit(reader: Reader, reads: list[Read], recipe: Recipe, padding: int) -> GradedResponse:
    """Train in place, on an accelerator if there is one; returns the scales."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(recipe.seed)
    reader.to(device).train()
    scales = GradedResponse().to(device)
    inner = [p for p in reader.backbone.parameters() if p.requires_grad]
    known = {id(p) for p in reader.backbone.parameters()}
    outer = [p for p in reader.parameters() if id(p) not in known]
    optimiser = torch.optim.AdamW(
        [
            {"params": inner, "lr": recipe.rate},
            {"params": [*outer, *scales.parameters()], "lr": recipe.head_rate},
        ],
        weight_decay=recipe.weight_decay,
    )
    plan = [batch for number in range(recipe.epochs) for batch in epoch(reads, recipe, number)]
    warm = max(1, round(recipe.warm_up * len(plan)))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser,
        lambda step: min(
            (step + 1) / warm, max(0.0, (len(plan) - step) / max(1, len(plan) - warm))
        ),
    )
    began, recent, skipped = time.monotonic(), 0.0, 0
    with ThreadPoolExecutor(1) as ahead:
        coming = ahead.submit(collate, plan[0], padding)
        for step in range(len(plan)):
            batch = coming.result().to(device)
            if step + 1 < len(plan):
                coming = ahead.submit(collate, plan[step + 1], padding)
            with torch.autocast(device.type, torch.bfloat16):
                logits = reader(batch.ids, batch.mask, batch.start)
            loss = loss_of(logits.float(), batch, scales)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
            if torch.isfinite(norm):  # half precision can overflow in a batch
                optimiser.step()
            else:
                skipped += 1
            schedule.step()
            if step % 50 == 49:
                recent = loss.item()
                took = time.monotonic() - began
                print(
                    f"step {step + 1}/{len(plan)} loss {recent:.3f} skipped {skipped} {took:.0f} s",
                    flush=True,
                )
    return scales.cpu()


@torch.no_grad()
def predict(reader: Reader, reads: list[Read], padding: int, batch: int = 128) -> np.ndarray:
    """Logits of all heads, float32 [reads, sum of widths]."""
    device = next(reader.parameters()).device
    reader.eval()
    order = sorted(range(len(reads)), key=lambda place: len(reads[place].ids))
    found: dict[int, np.ndarray] = {}
    for begin in range(0, len(order), batch):
        some = order[begin : begin + batch]
        made = collate([reads[place] for place in some], padding).to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = reader(made.ids, made.mask, made.start).float().cpu().numpy()
        found.update(zip(some, logits, strict=True))
    return np.stack([found[place] for place in range(len(reads))])


def main(
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("build/reader"),
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    encoder: Annotated[str, typer.Option(help="Folder of a pretrained encoder.")] = "",
    fold: Annotated[int | None, typer.Option(help="Hold this fold out.")] = None,
    leave_out: Annotated[
        str, typer.Option(help="Prefixes of corpora to leave out, with commas.")
    ] = "",
    contrast: Annotated[Path, typer.Option(help="Folder of the voices.")] = written.CONTRAST,
    keep: Annotated[
        bool, typer.Option(help="Save weights, and crisis logits of ordinary turns.")
    ] = False,
    epochs: int = Recipe.epochs,
    rate: float = Recipe.rate,
    seed: int = Recipe.seed,
    share: Annotated[float, typer.Option(help="Share of the data, for trial runs.")] = 1.0,
    teachers: Annotated[
        list[Path] | None, typer.Option("--teacher", help="Logits of a teacher (repeatable).")
    ] = None,
) -> None:
    """Train on what is not held out and write the logits of what is."""
    recipe = Recipe(epochs=epochs, rate=rate, seed=seed)
    folder = resolve_data_dir(data_dir)
    examples = [*corpora.load(folder), *written.load(folder, contrast)]
    judged = len(examples)
    if teachers:
        examples += mined.load(folder, contrast)
    every = max(1, round(1 / share))
    reads = tokenised(examples[::every], encoder)
    if teachers:
        reads = taught(reads, teachers)
    voices = sorted({read.example.key for read in reads if voiced(read.example.corpus)})
    left = tuple(prefix for prefix in leave_out.split(",") if prefix)
    held = [
        bool(left and read.example.corpus.startswith(left))
        or (fold is not None and fold_number(read.example, 17, voices) == fold)
        for read in reads
    ]
    padding = AutoTokenizer.from_pretrained(encoder).pad_token_id
    reader = new_reader(encoder, recipe)
    training = [read for read, is_held in zip(reads, held, strict=True) if not is_held]
    scales = fit(reader, training, recipe, padding)
    out.mkdir(parents=True, exist_ok=True)
    places = [place for place, is_held in enumerate(held) if is_held and place * every < judged]
    if places:
        logits = predict(reader, [reads[place] for place in places], padding)
        np.savez(out / "predictions.npz", places=np.array(places), logits=logits.astype(np.float16))
    if keep:
        kept = {
            name: value.half().cpu()
            for name, value in reader.state_dict().items()
            if "word_embeddings" not in name
        }
        torch.save(kept, out / "reader.pt")
        torch.save(scales.state_dict(), out / "scales.pt")
        ordinary = predict(reader, tokenised(corpora.ordinary_turns(folder), encoder), padding)
        np.save(out / "ordinary.npy", split(torch.from_numpy(ordinary))["crisis"][:, 0].numpy())
    about = {"recipe": asdict(recipe), "fold": fold, "left_out": list(left), "read": len(training)}
    (out / "training.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
