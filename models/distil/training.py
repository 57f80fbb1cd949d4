"""Train the student on the teacher's outputs alone, without labels.

    loss = vectors + rationale + heads
    vectors     squared distance in units of the teacher's variance, and 1 - cosine after
                subtracting the teacher's mean; for both vectors of a turn
    rationale   cross-entropy with the teacher's probability, for each token of counsellor turns
    heads       Kullback-Leibler divergence of the student's head on the student's vectors from the
                teacher's head on the teacher's, through the same window; all heads of the role

Every step draws its data and windows from the seed, the epoch and the step number, and there is no
dropout: a resumed run gives the same student as an uninterrupted one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from models.distil.teacher import Outputs
from models.distil.turns import Group, Material, group, steps
from models.fit.optimisation import Optimisation, optimiser_for
from models.labels import COUNSELLOR, HEADS
from models.model.batches import FINAL, TRAINING, Window, encoder_chunks
from models.model.heads import through_half
from models.model.multitask import MultitaskModel

CHUNK_TOKENS = 1024
CHECKED_PIECES = 160


@dataclass
class Recipe:
    """All parameters of the training, besides the teacher and the data."""

    epochs: int = 3
    seed: int = 17
    encoder_rate: float = 4e-4
    head_rate: float = 3e-4
    warm_up: float = 0.03
    weight_decay: float = 0.01
    tokens_a_step: int = 2048
    bf16: bool = True
    vector_weight: float = 1.0
    rationale_weight: float = 1.0
    head_weight: float = 1.0


@dataclass
class Spread:
    """Mean [2, hidden] and variance [2] of the teacher's vectors."""

    mean: Tensor
    variance: Tensor

    @classmethod
    def of(cls, outputs: Outputs, most: int = 8192) -> Spread:
        """Estimate them from the first texts."""
        vectors = torch.from_numpy(outputs.vectors[:most]).float()
        return cls(vectors.mean(0), vectors.var(0).mean(-1))


@dataclass
class Losses:
    """Terms of one step's loss; `agreement`: by head, count of equal labels and of turns."""

    vectors: Tensor
    rationale: Tensor
    heads: Tensor
    agreement: dict[str, tuple[int, int]]

    def total(self, recipe: Recipe) -> Tensor:
        """The weighted sum."""
        return (
            recipe.vector_weight * self.vectors
            + recipe.rationale_weight * self.rationale
            + recipe.head_weight * self.heads
        )


class Teacher:
    """The teacher's head, and its encoder outputs for every text."""

    def __init__(self, model: MultitaskModel, outputs: Outputs) -> None:
        self.head = model.head.eval()
        self.outputs = outputs
        self.spread = Spread.of(outputs)

    def vectors(self, texts: list[int]) -> Tensor:
        """Vectors [texts, 2, hidden] of these texts."""
        return torch.from_numpy(self.outputs.vectors[texts]).float()

    def rationale(self, text: int) -> Tensor:
        """Rationale logits [tokens, 3] of a text."""
        starts = self.outputs.starts
        rows = self.outputs.rationale[starts[text] : starts[text + 1]]
        return torch.from_numpy(rows).float()


def losses_of(
    student: MultitaskModel, teacher: Teacher, texts: list[list[int]], drawn: Group, *, bf16: bool
) -> Losses:
    """Loss terms of the student on one step."""
    rationale, tokens = torch.zeros(()), 0
    given, order = [], []
    for chunk in encoder_chunks(drawn.tokenised(texts), CHUNK_TOKENS):
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            vectors, logits = student.encoder(chunk.input_ids, chunk.attention_mask)
        rows = chunk.turns.tolist()
        given.append(vectors.float())
        order += rows
        spoken = [place for place, row in enumerate(rows) if drawn.role[row] == COUNSELLOR]
        if spoken:
            wanted = torch.cat([teacher.rationale(drawn.texts[rows[place]]) for place in spoken])
            kept = torch.cat([logits[p, : len(texts[drawn.texts[rows[p]]])] for p in spoken])
            rationale = rationale + nn.functional.binary_cross_entropy_with_logits(
                kept.float(), wanted.sigmoid(), reduction="sum"
            )
            tokens += len(wanted)
    vectors = torch.cat(given)[torch.tensor(order).argsort()]
    wanted = teacher.vectors(drawn.texts)
    heads, agreement = _heads(student, teacher, drawn, vectors, wanted)
    return Losses(
        _distance(vectors, wanted, teacher.spread), rationale / max(1, tokens), heads, agreement
    )


def _distance(given: Tensor, wanted: Tensor, spread: Spread) -> Tensor:
    squared = ((given - wanted) ** 2).mean(-1) / spread.variance
    cosine = nn.functional.cosine_similarity(given - spread.mean, wanted - spread.mean, dim=-1)
    return (squared + 1 - cosine).mean()


def _heads(
    student: MultitaskModel, teacher: Teacher, drawn: Group, given: Tensor, wanted: Tensor
) -> tuple[Tensor, dict[str, tuple[int, int]]]:
    own = logits_of(student.head.in_context, drawn, given)
    with torch.no_grad():
        aim = logits_of(teacher.head.in_context, drawn, wanted)
    total, agreement = torch.zeros(()), {}
    for head, answers, right in zip(HEADS, own, aim, strict=True):
        rows = drawn.role == head.role
        if not rows.any():
            continue
        own_log, aim_log = answers[rows].log_softmax(-1), right[rows].log_softmax(-1)
        divergence = nn.functional.kl_div(own_log, aim_log, reduction="sum", log_target=True)
        total = total + divergence
        same = (own_log.argmax(-1) == aim_log.argmax(-1)).sum()
        agreement[head.name] = int(same), int(rows.sum())
    return total / len(drawn.texts), agreement


def logits_of(
    head: Callable[..., tuple[Tensor, ...]], drawn: Group, vectors: Tensor
) -> tuple[Tensor, ...]:
    """Logits of every head for all turns of the step."""
    kept = through_half(vectors)
    return head(
        kept, drawn.role, kept[drawn.context, 1], drawn.context_role, drawn.distance, drawn.mask
    )


def fit(
    student: MultitaskModel,
    teacher: Teacher,
    material: Material,
    recipe: Recipe,
    *,
    checkpoint: Path | None = None,
    resume: bool = False,
    every: int = 200,
    most_steps: int | None = None,
) -> None:
    """Train in place; every `every` steps, evaluate held-out pieces and save a checkpoint."""
    plan = [
        members
        for epoch in range(recipe.epochs)
        for members in steps(
            material.training, material.texts, recipe.tokens_a_step, recipe.seed, epoch
        )
    ][:most_steps]
    optimisation = Optimisation(student, optimiser_for(student, recipe), len(plan), recipe.warm_up)
    if resume:
        optimisation.resume(checkpoint)
    student.eval()  # no dropout: the teacher's outputs are computed once and deterministic
    log = _Log(len(plan))
    while not optimisation.finished:
        number = optimisation.done
        drawn = group(plan[number], TRAINING, recipe.seed, number, "windows")
        found = losses_of(student, teacher, material.texts, drawn, bf16=recipe.bf16)
        optimisation.step(found.total(recipe))
        log.add(found, len(drawn.texts))
        if optimisation.done % every == 0 or optimisation.finished:
            if checkpoint is not None:
                optimisation.save(checkpoint)
            log.print(optimisation.done, check(student, teacher, material, recipe))


@torch.no_grad()
def check(
    student: MultitaskModel,
    teacher: Teacher,
    material: Material,
    recipe: Recipe,
    window: Window = FINAL,
) -> dict[str, float]:
    """Losses and agreement with the teacher's labels by head, on held-out pieces."""
    pieces = material.held_out
    pieces = pieces[:: max(1, len(pieces) // CHECKED_PIECES)]
    drawn = group(pieces, window, "check")
    found = losses_of(student, teacher, material.texts, drawn, bf16=recipe.bf16)
    shares = {name: same / count for name, (same, count) in found.agreement.items()}
    return {
        "vectors": found.vectors.item(),
        "rationale": found.rationale.item(),
        "heads": found.heads.item(),
        **shares,
    }


class _Log:
    """Averages the training losses and turns per second between two log lines."""

    def __init__(self, planned: int) -> None:
        self.planned = planned
        self._restart()

    def _restart(self) -> None:
        self.started, self.cpu = time.monotonic(), time.process_time()
        self.sums, self.count, self.turns = torch.zeros(3), 0, 0

    def add(self, found: Losses, turns: int) -> None:
        parts = (found.vectors, found.rationale, found.heads)
        self.sums += torch.stack([part.detach() for part in parts])
        self.count += 1
        self.turns += turns

    def print(self, step: int, held_out: dict[str, float]) -> None:
        means = " ".join(f"{value:.3f}" for value in (self.sums / self.count).tolist())
        rate = self.turns / (time.monotonic() - self.started)
        cpu = self.turns / (time.process_time() - self.cpu)
        losses = " ".join(f"{held_out[name]:.3f}" for name in ("vectors", "rationale", "heads"))
        agreement = [held_out[head.name] for head in HEADS if head.name in held_out]
        print(
            f"step {step}/{self.planned} loss {means} | held out {losses} equal labels "
            f"{100 * sum(agreement) / len(agreement):.1f} % (least {100 * min(agreement):.1f}) | "
            f"{rate:.0f} turns/s, {cpu:.0f} a second of CPU",
            flush=True,
        )
        self._restart()
