"""`python -m models.fit.train --out FOLDER`: train the multi-task model on the public corpora."""

from __future__ import annotations

import itertools
import shlex
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import Tensor

from models.data import contrast as context_contrast
from models.data import load_for_command
from models.data.corpora import Conversation, Part, resolve_data_dir
from models.data.registry import describe, repeats
from models.data.split import DESCRIPTION, split, split_fold
from models.fit.optimisation import Optimisation, optimiser_for
from models.fit.teacher import Teacher, divergence
from models.labels import HEADS
from models.model import multitask
from models.model.batches import (
    THROUGH_CONTEXT,
    TRAINING,
    Segment,
    Step,
    Window,
    collate,
    epoch_steps,
    seeded_random,
    tokenise,
)
from models.model.encoder import MAX_TOKENS, encoder_name
from models.model.frozen import LowerStates
from models.model.losses import HeadLoss, LossName, rationale_loss

REPEATS = {**repeats(), "contrast": 1}
RATIONALE_WEIGHT = 0.5
"""Lambda of the rationale loss (EPITOME, section 5.4)."""


@dataclass
class Recipe:
    """All parameters of the training, besides the data."""

    epochs: int = 2
    seed: int = 17
    encoder_rate: float = 8e-5
    head_rate: float = 1e-3
    warm_up: float = 0.06
    weight_decay: float = 0.01
    pairs_a_step: int = 16
    loss: LossName = "weighted"
    bf16: bool = True
    frozen_layers: int = 2
    contrast: bool = True
    taught: float = 1.0
    """Weight of the divergence from the teacher, if there is one."""
    repeats: dict[str, int] = field(default_factory=lambda: dict(REPEATS))
    """Passes over each corpus in an epoch; corpora that are not named are left out."""
    window: Window = TRAINING
    """How much of its context a training turn sees."""
    through_context: tuple[str, ...] = THROUGH_CONTEXT
    """Corpora whose context turns also receive gradients."""
    max_tokens: int = MAX_TOKENS
    """Longer turns are cut."""


def label_counts(segments: list[Segment]) -> dict[str, Tensor]:
    """Votes for each label of each head over the scored turns."""
    counts = {head.name: torch.zeros(len(head.labels)) for head in HEADS}
    for segment in segments:
        for position in segment.scored:
            for head, distribution in segment.turns[position].turn.labels.items():
                counts[head] += torch.tensor(distribution)
    return counts


def total_loss(
    logits: dict[str, Tensor],
    rationale_logits: list[Tensor],
    step: Step,
    losses: dict[str, HeadLoss],
) -> Tensor:
    """Weighted sum of the heads' losses and the rationale loss of one step."""
    total = torch.zeros(())
    for head in HEADS:
        if head.name in step.targets.labels:
            rows, target = step.targets.labels[head.name]
            total = total + head.weight * losses[head.name](logits[head.name][rows], target)
    known = [
        (values, chunk)
        for values, chunk in zip(rationale_logits, step.chunks, strict=True)
        if chunk.rationale_mask.any()
    ]
    if known:
        flat = [values.reshape(-1, 3) for values, _ in known]
        target = torch.cat([chunk.rationale.reshape(-1, 3) for _, chunk in known])
        mask = torch.cat([chunk.rationale_mask.reshape(-1, 3) for _, chunk in known])
        total = total + 3 * RATIONALE_WEIGHT * rationale_loss(torch.cat(flat), target, mask)
    return total


def run_step(
    model: multitask.MultitaskModel,
    step: Step,
    losses: dict[str, HeadLoss],
    recipe: Recipe,
    teacher: Teacher | None = None,
) -> Tensor:
    """Loss of one step; `bf16` runs the encoder's matrix products in bfloat16."""
    device = next(model.parameters()).device
    step = step.to(device)
    with torch.autocast(device.type, torch.bfloat16, enabled=recipe.bf16):
        vectors, rationale_logits = model.encode(step.chunks, step.turns)
    logits = model.score(vectors.float(), step.targets)
    loss = total_loss(logits, [values.float() for values in rationale_logits], step, losses)
    if teacher is not None and recipe.taught:
        loss = loss + recipe.taught * divergence(logits, teacher.answers(step), step.targets.role)
    return loss


def fit(
    model: multitask.MultitaskModel,
    segments: list[Segment],
    recipe: Recipe,
    *,
    checkpoint: Path | None = None,
    resume: bool = False,
    max_steps: int | None = None,
    teacher: Teacher | None = None,
) -> None:
    """Train in place, on an accelerator if available; the model is moved back to the CPU.

    The order of the data depends only on the seed and the epoch.
    """
    device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    model.to(device or "cpu")
    if teacher is not None:
        teacher.model.to(device or "cpu")
    losses = {
        name: HeadLoss(recipe.loss, counts).to(device or "cpu")
        for name, counts in label_counts(segments).items()
    }
    plan = [
        epoch_steps(
            segments, recipe.repeats, recipe.pairs_a_step, seeded_random(recipe.seed, epoch)
        )
        for epoch in range(recipe.epochs)
    ]
    planned = sum(map(len, plan))
    optimisation = Optimisation(
        model,
        optimiser_for(model, recipe),
        planned if max_steps is None else min(planned, max_steps),
        recipe.warm_up,
    )
    if resume:
        optimisation.resume(checkpoint)
    ends = list(itertools.accumulate(map(len, plan)))
    for epoch, members_of_steps in enumerate(plan):
        if optimisation.done >= ends[epoch] or optimisation.finished:
            continue
        model.train()
        torch.manual_seed(recipe.seed * 1000 + epoch)
        chance = seeded_random(recipe.seed, epoch, "windows")
        log = _StepLog(epoch + 1, len(members_of_steps))
        for members in members_of_steps:
            if optimisation.finished:
                break
            step = collate(members, recipe.window, chance, through_context=recipe.through_context)
            loss = run_step(model, step, losses, recipe, teacher)
            optimisation.step(loss)
            log.add(loss.item())
        if checkpoint is not None:
            optimisation.save(checkpoint)
    model.cpu()


class _StepLog:
    """Prints the mean loss of every twenty steps."""

    def __init__(self, epoch: int, planned: int) -> None:
        self.epoch, self.planned = epoch, planned
        self.started = time.monotonic()
        self.losses: list[float] = []

    def add(self, loss: float) -> None:
        self.losses.append(loss)
        if len(self.losses) % 20 == 0:
            print(
                f"epoch {self.epoch} step {len(self.losses)}/{self.planned} "
                f"loss {sum(self.losses[-20:]) / 20:.3f} "
                f"minutes {(time.monotonic() - self.started) / 60:.1f}",
                flush=True,
            )


def command_line() -> str:
    """The running command as typed."""
    spec = sys.modules["__main__"].__spec__
    name = spec.name.removesuffix(".__main__") if spec else Path(sys.argv[0]).name
    return shlex.join(["python", "-m", name, *sys.argv[1:]])


def train(
    conversations: list[Conversation],
    parts: dict[Part, list[Conversation]],
    recipe: Recipe,
    out: Path,
    *,
    data_dir: Path,
    split_words: str,
    lower: LowerStates | None = None,
    resume: bool = False,
    max_steps: int | None = None,
    encoder: str | None = None,
    teacher: Path | None = None,
) -> multitask.MultitaskModel:
    """Train on the training part for the recipe's epochs and save the model in `out`.

    `conversations` are all that were loaded, for the data description in the manifest; contrast
    examples are built from the training part alone. `lower` is passed between trainings in one
    process. `encoder` names another pretrained encoder; `teacher` is the folder of a model trained
    on the same part, for knowledge distillation.
    """
    torch.manual_seed(recipe.seed)
    training = list(parts["train"])
    made = context_contrast.load(training, data_dir, recipe.seed) if recipe.contrast else []
    training += made
    model, tokenizer = multitask.from_base(encoder)
    model.encoder.freeze_layers(recipe.frozen_layers)
    segments = tokenise(training, tokenizer, recipe.max_tokens)
    (lower or LowerStates()).fill(segments, model.encoder, bf16=recipe.bf16)
    guide = Teacher.read(teacher, split_words) if teacher else None
    if guide:
        guide.prepare(segments)
    out.mkdir(parents=True, exist_ok=True)
    checkpoint = out / "checkpoint.pt"
    fit(
        model,
        segments,
        recipe,
        checkpoint=checkpoint,
        resume=resume,
        max_steps=max_steps,
        teacher=guide,
    )
    about: dict[str, object] = {
        "base_model": encoder_name(encoder),
        "teacher": guide.name if guide else None,
        "data": describe([*conversations, *made]),
        "split": split_words,
        "split_sizes": {part: len(members) for part, members in parts.items()},
        "command": command_line(),
        "recipe": asdict(recipe),
        "epochs": recipe.epochs,
        "seed": recipe.seed,
    }
    multitask.save(model, tokenizer, out, about)
    checkpoint.unlink(missing_ok=True)
    return model.eval()


def main(
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[Path, typer.Option(help="Folder to write the model to.")] = Path("build/model"),
    fold: Annotated[int | None, typer.Option(help="Hold this fold out for testing.")] = None,
    folds: Annotated[int, typer.Option(help="Number of folds.")] = 5,
    epochs: int = Recipe.epochs,
    seed: int = Recipe.seed,
    threads: int = 2,
    loss: LossName = Recipe.loss,
    frozen_layers: Annotated[
        int, typer.Option(help="Number of lowest layers to freeze.")
    ] = Recipe.frozen_layers,
    contrast: Annotated[bool, typer.Option(help="Train with context contrast.")] = True,
    encoder: Annotated[
        str | None, typer.Option(help="Folder or hub name of another pretrained encoder.")
    ] = None,
    teacher: Annotated[
        Path | None, typer.Option(help="Folder of a teacher for knowledge distillation.")
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(help="Stop after this many steps, for trial runs.")
    ] = None,
    bf16: Annotated[bool, typer.Option(help="bfloat16 in the encoder.")] = True,
    resume: Annotated[bool, typer.Option(help="Resume after the last finished epoch.")] = False,
) -> None:
    """Train on everything but the held-out part: a tenth of the conversations, or one fold."""
    torch.set_num_threads(threads)
    recipe = Recipe(
        epochs=epochs,
        seed=seed,
        loss=loss,
        bf16=bf16,
        frozen_layers=frozen_layers,
        contrast=contrast,
    )
    conversations = load_for_command(data_dir)
    if fold is None:
        parts, words = split(conversations, seed), DESCRIPTION
    else:
        parts, words = split_fold(conversations, fold, folds, seed), f"fold {fold} of {folds}"
    train(
        conversations,
        parts,
        recipe,
        out,
        data_dir=resolve_data_dir(data_dir),
        split_words=words,
        resume=resume,
        max_steps=max_steps,
        encoder=encoder,
        teacher=teacher,
    )
    print(f"model written to {out}")


if __name__ == "__main__":
    typer.run(main)
