"""`python -m models.distil`: train, calibrate and evaluate a small model.

`train` distils the teacher; `python -m models.fit.perceived` fits the outcome heads to listeners'
ratings, on the student's features; then `calibrate` and `python -m export`; `outcomes` and
`compare` work on the exported bundle. `make nano` runs all of them.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import torch
import typer

from models.bundle import CARD, MANIFEST, write_manifest
from models.card import model_card
from models.data import load_for_command
from models.data.corpora import resolve_data_dir
from models.data.rated_sessions import load_sessions
from models.distil import calibration, compare
from models.distil.student import flops_a_token, from_teacher
from models.distil.teacher import outputs
from models.distil.training import Recipe, Teacher, check, fit
from models.distil.turns import Amount, conversations, material
from models.evaluate.bundle_comparison import comparison_tables
from models.fit.calibrate import Calibration
from models.fit.perceived import left_out_of, share_of
from models.fit.train import command_line
from models.model import multitask
from models.pages import document
from stream_app.inference.bundles import bundle as bundles

app = typer.Typer(add_completion=False)
Data = Annotated[Path | None, typer.Option(help="Folder with the corpora.")]
Out = Annotated[Path, typer.Option(help="The student's folder.")]
From = Annotated[Path, typer.Option(help="Folder of the trained model.")]
Student = Annotated[Path, typer.Option(help="The student's folder.")]
Small = Annotated[Path, typer.Option(help="Small bundle: name of a shipped one, or a folder.")]
Large = Annotated[Path, typer.Option(help="Large bundle: name of a shipped one, or a folder.")]
TEACHER, CALIBRATION = "teacher", "calibration.json"
SAMPLE = 400
"""Number of texts for ranking feed-forward units."""


@app.command()
def train(
    teacher: From = Path("build/model"),
    out: Out = Path("build/nano"),
    data_dir: Data = None,
    layers: Annotated[
        list[int] | None, typer.Option(help="Layers to keep, counted from 0; default: 0 and 5.")
    ] = None,
    units: Annotated[int, typer.Option(help="Feed-forward units to keep per layer.")] = 768,
    chats: Annotated[int, typer.Option(help="Chats of EmpatheticDialogues.")] = Amount.chats,
    service: Annotated[int, typer.Option(help="Service dialogues.")] = Amount.service,
    epochs: int = Recipe.epochs,
    seed: int = Recipe.seed,
    encoder_rate: float = Recipe.encoder_rate,
    bf16: Annotated[bool, typer.Option(help="bfloat16 in both encoders.")] = True,
    threads: int = 2,
    max_steps: Annotated[
        int | None, typer.Option(help="Stop after this many steps, for trial runs.")
    ] = None,
    every: Annotated[int, typer.Option(help="Steps between two checkpoints.")] = 200,
    resume: Annotated[bool, typer.Option(help="Resume from the last checkpoint.")] = False,
) -> None:
    """Train a student on the teacher's outputs, without labels."""
    torch.set_num_threads(threads)
    large, tokenizer = multitask.load(teacher)
    about = json.loads((teacher / "training.json").read_text(encoding="utf-8"))
    amount, recipe = Amount(chats, service), Recipe(epochs, seed, encoder_rate, bf16=bf16)
    kept = layers or [0, len(large.encoder.layers) - 1]
    found = material(*conversations(resolve_data_dir(data_dir), share_of(about), amount), tokenizer)
    turns = sum(len(piece.texts) for piece in found.training)
    print(f"{turns} turns, {len(found.texts)} texts including the held-out part", flush=True)
    said = outputs(large, found.texts, out / TEACHER, bf16=bf16)
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


@app.command()
def calibrate(
    teacher: From = Path("build/model"),
    student: Student = Path("build/nano"),
    data_dir: Data = None,
    threads: int = 2,
) -> None:
    """Fit the student's probabilities to the teacher's, on held-out turns without labels."""
    torch.set_num_threads(threads)
    large, tokenizer = multitask.load(teacher)
    small, _ = multitask.load(student)
    about = json.loads((student / "training.json").read_text(encoding="utf-8"))
    known = about["distillation"]
    amount = Amount(known["chats"], known["service"])
    found = material(*conversations(resolve_data_dir(data_dir), share_of(about), amount), tokenizer)
    said = outputs(large, found.texts, student / TEACHER, bf16=about["recipe"]["bf16"])
    of_teacher = Calibration.read(teacher / CALIBRATION)
    calibration.fit(small, Teacher(large, said), found, of_teacher).write(student / CALIBRATION)
    print(f"written to {student / CALIBRATION}")


@app.command()
def outcomes(bundle: Small = Path("nano"), teacher: Large = Path("default")) -> None:
    """Copy the large bundle's outcome models into the small one.

    The student's probabilities are calibrated to the large bundle's, so the models apply unchanged.
    The empathy index has its own references (`python -m models.construct fit --own`).
    """
    target = bundles.find(bundle)
    source = json.loads((bundles.find(teacher) / MANIFEST).read_text(encoding="utf-8"))
    content = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
    content["outcomes"] = source["outcomes"]
    write_manifest(target, content)
    (target / CARD).write_text(model_card(content), encoding="utf-8")
    print(f"outcome models of {source['name']} {source['version']} written to {target}")


@app.command("compare")
def compare_bundles(
    bundle: Small = Path("nano"),
    teacher: Large = Path("default"),
    data_dir: Data = None,
    out: Annotated[Path, typer.Option(help="The evaluation's folder.")] = document.FOLDER,
    rounds: Annotated[int, typer.Option(help="Rounds of speed measurement.")] = 5,
    sessions: Annotated[
        int | None, typer.Option(help="Maximum number of sessions for the outcome risk.")
    ] = None,
) -> None:
    """Compare the small bundle with the large one; update docs/evaluation and its model card."""
    torch.set_num_threads(1)
    pair = bundles.load(bundles.find(teacher)), bundles.load(bundles.find(bundle))
    training = pair[1].manifest.training
    test = left_out_of(load_for_command(data_dir), training)
    share = share_of(training)
    chats = [
        session
        for session in load_sessions(resolve_data_dir(data_dir), 0)
        if session.low is not None and not share.trains(session.key)
    ]
    found = compare.report(pair, test, chats[:sessions], rounds)
    out.mkdir(parents=True, exist_ok=True)
    document.write_json(out / "nano.json", found)
    print(comparison_tables(found))
    page = document.write(out)
    manifest = pair[1].path / MANIFEST
    content = json.loads(manifest.read_text(encoding="utf-8"))
    files = document.read_all(out)
    (pair[1].path / CARD).write_text(model_card(content, files), encoding="utf-8")
    print(f"written to {out / 'nano.json'}, {page} and the model card")


if __name__ == "__main__":
    app()
