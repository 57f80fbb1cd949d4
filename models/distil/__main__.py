"""`python -m models.distil train --teacher build/model --out build/nano`: a smaller model."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import torch
import typer

from models import multitask
from models.data.corpora import resolve_data_dir
from models.distil.student import flops_a_token, from_teacher
from models.distil.teacher import outputs
from models.distil.training import Recipe, Teacher, check, fit
from models.distil.turns import Amount, conversations, material
from models.perceived import share_of
from models.train import command_line

app = typer.Typer(add_completion=False)
Data = Annotated[Path | None, typer.Option(help="Folder with the corpora.")]
Out = Annotated[Path, typer.Option(help="The student's folder.")]
From = Annotated[Path, typer.Option(help="Folder of the trained model.")]
SAMPLE = 400
"""Texts that decide which feed-forward units a student keeps."""


@app.callback()
def commands() -> None:
    """A smaller model that says what a trained one says."""


@app.command()
def train(
    teacher: From = Path("build/model"),
    out: Out = Path("build/nano"),
    data_dir: Data = None,
    layers: Annotated[
        list[int] | None, typer.Option(help="Layers to keep, counted from 0; default: 0 and 5.")
    ] = None,
    units: Annotated[int, typer.Option(help="Feed-forward units to keep of each layer.")] = 768,
    chats: Annotated[int, typer.Option(help="Chats of EmpatheticDialogues.")] = Amount.chats,
    service: Annotated[int, typer.Option(help="Service dialogues.")] = Amount.service,
    epochs: int = Recipe.epochs,
    seed: int = Recipe.seed,
    encoder_rate: float = Recipe.encoder_rate,
    bf16: Annotated[bool, typer.Option(help="bfloat16 in both encoders.")] = True,
    threads: int = 2,
    max_steps: Annotated[int | None, typer.Option(help="Stop early, to try things out.")] = None,
    every: Annotated[int, typer.Option(help="Steps between two checkpoints.")] = 200,
    resume: Annotated[bool, typer.Option(help="Go on after the last checkpoint.")] = False,
) -> None:
    """Train a student on what the teacher says of turns, without labels."""
    torch.set_num_threads(threads)
    large, tokenizer = multitask.load(teacher)
    about = json.loads((teacher / "training.json").read_text(encoding="utf-8"))
    amount, recipe = Amount(chats, service), Recipe(epochs, seed, encoder_rate, bf16=bf16)
    kept = layers or [0, len(large.encoder.backbone.encoder.layer) - 1]
    found = material(
        *conversations(resolve_data_dir(data_dir), share_of(about), amount), tokenizer
    )
    turns = sum(len(piece.texts) for piece in found.training)
    print(f"{turns} turns, {len(found.texts)} texts with what is held out", flush=True)
    said = outputs(large, found.texts, out / "teacher", bf16=bf16)
    student = from_teacher(large, kept, units, found.texts[:: max(1, len(found.texts) // SAMPLE)])
    taught = Teacher(large, said)
    fit(
        student,
        taught,
        found,
        recipe,
        checkpoint=out / "checkpoint.pt",
        resume=resume,
        every=every,
        most_steps=max_steps,
    )
    about |= {
        "command": command_line(),
        "recipe": asdict(recipe) | {"layers": kept, "units": units},
        "epochs": epochs,
        "distillation": {
            "teacher_parameters": sum(weights.numel() for weights in large.parameters()),
            "teacher_flops_a_token": flops_a_token(large),
            "flops_a_token": flops_a_token(student),
            "layers": kept,
            "units": units,
            "turns": turns,
            **asdict(amount),
            "held_out": check(student, taught, found, recipe),
        },
    }
    multitask.save(student, tokenizer, out, about)
    print(f"student written to {out}")


if __name__ == "__main__":
    app()
