"""`python -m export.heads --bundle FOLDER --name north --out FOLDER`: train a head bundle.

The task heads of a team or channel on the encoder of an existing bundle, which stays as it is, to
the bit: turns are encoded by the bundle's own graph, and only the task networks of heads with
labels learn. All other heads, the context fusion and the probes are those of the bundle.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import torch
import typer
from tokenizers import Tokenizer
from torch import Tensor

from export.onnx_graphs import export_head
from export.quantize import half_weights
from models.bundle import CARD, FORMAT, HEAD, TOKENIZER, sha256, write_manifest
from models.data import Conversation, load_for_command
from models.data.registry import describe
from models.data.split import DESCRIPTION, fold_of, key_of, split
from models.evaluate.predict import Predictions, predict
from models.fit.calibrate import Calibration, calibrate
from models.fit.train import command_line, label_counts
from models.labels import HEADS
from models.model.batches import FINAL, TRAINING, Segment, Step, collate, seeded_random, tokenise
from models.model.head_graph import read_head
from models.model.heads import ContextHead, through_half
from models.model.losses import HeadLoss
from models.model.multitask import windows_of
from models.pages.report import markdown, measure
from stream_app.contracts.events import Role
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.bundles.bundle import Bundle
from stream_app.inference.head_bundle import encoder_of
from stream_app.inference.scorer import OnnxScorer

AT_A_TIME = 256
CALIBRATION_FOLDS = 5
"""One of five parts of the training conversations fits the calibration instead."""
REFERENCES = ("empathy", "outcomes", "perceived")
"""Parts of the manifest that were fitted on the scores of the bundle's own heads."""


@dataclass(frozen=True)
class Recipe:
    """Hyper-parameters of the task networks; ``segments``: conversations' parts a step."""

    epochs: int = 4
    rate: float = 3e-4
    weight_decay: float = 0.01
    segments: int = 16
    seed: int = 17


class FrozenHeads:
    """A context head over vectors that the bundle's encoder has computed (``Step.taught``)."""

    def __init__(self, head: ContextHead) -> None:
        self.head = head

    def __call__(self, step: Step) -> tuple[dict[str, Tensor], list[Tensor]]:
        """Logits by head; the rationale logits are zeros, as rationales are the encoder's."""
        if step.taught is None:
            raise ValueError("the step's turns have no vectors")
        logits = self.head(*windows_of(through_half(step.taught), step.targets))
        by_name = {head.name: values for head, values in zip(HEADS, logits, strict=True)}
        return by_name, [torch.zeros_like(chunk.rationale) for chunk in step.chunks]


def encode(segments: Sequence[Segment], scorer: OnnxScorer) -> None:
    """Set each turn's vectors, computed once for each text by the bundle's encoder graph."""
    turns = {id(turn): turn for segment in segments for turn in segment.turns}.values()
    texts = sorted({turn.turn.text for turn in turns})
    vectors: dict[str, Tensor] = {}
    for first in range(0, len(texts), AT_A_TIME):
        some = texts[first : first + AT_A_TIME]
        for text, found in zip(some, scorer.encode(some, [Role.CLIENT] * len(some)), strict=True):
            held = torch.frombuffer(bytearray(found.vectors), dtype=torch.float16)
            vectors[text] = held.reshape(2, -1).float()
    for turn in turns:
        turn.taught = vectors[turn.turn.text]


def learn(
    head: ContextHead, segments: list[Segment], recipe: Recipe
) -> tuple[ContextHead, set[str]]:
    """Train copies of the task networks with labels; also their names."""
    counts = label_counts(segments)
    names = {name for name, found in counts.items() if float(found.sum()) > 0}
    losses = {name: HeadLoss("weighted", counts[name]) for name in names}
    weights = {item.name: item.weight for item in HEADS}
    trained = copy.deepcopy(head).eval()
    for parameter in trained.parameters():
        parameter.requires_grad = False
    tasks = [trained.tasks[name] for name in sorted(names)]
    for task in tasks:
        task.train().requires_grad_()
    torch.manual_seed(recipe.seed)
    rows = [parameter for task in tasks for parameter in task.parameters()]
    optimiser = torch.optim.AdamW(rows, lr=recipe.rate, weight_decay=recipe.weight_decay)
    for epoch in range(recipe.epochs):
        chance = seeded_random(recipe.seed, epoch)
        order = chance.sample(segments, len(segments))
        for first in range(0, len(order), recipe.segments):
            step = collate(order[first : first + recipe.segments], TRAINING, chance)
            if step.taught is None or not step.targets.labels:
                continue
            fused = trained.fuse(*windows_of(through_half(step.taught), step.targets))
            loss = torch.zeros(())
            for name, (labelled, target) in step.targets.labels.items():
                logits = trained.tasks[name](fused[labelled])
                loss = loss + weights[name] * losses[name](logits, target)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return trained.eval(), names


def build(
    base: Bundle,
    out: Path,
    conversations: list[Conversation],
    name: str,
    version: str,
    recipe: Recipe,
    *,
    references: bool = True,
    threads: int = 1,
) -> dict[str, Any]:
    """Train the heads, write the folder and return its manifest.

    ``references``: whether the empathy index, outcome models and groups of the bundle are used,
    which were fitted on the scores of its own heads; without them sessions have no index or risk.
    """
    scorer = OnnxScorer(base, threads=threads)
    tokenizer = Tokenizer.from_file(str(base.path / TOKENIZER))
    tokenizer.no_truncation()
    parts = split(conversations, recipe.seed)
    fitting = [each for each in parts["train"] if _calibrates(each, recipe.seed)]
    learnt = [each for each in parts["train"] if not _calibrates(each, recipe.seed)]
    segments = {
        part: tokenise(some, tokenizer)
        for part, some in (("learnt", learnt), ("fitting", fitting), ("test", parts["test"]))
    }
    for some in segments.values():
        encode(some, scorer)
    before = read_head(base.path / base.manifest.head.file)
    after, names = learn(before, segments["learnt"], recipe)
    fitted = calibrate([_predicted(after, segments["fitting"], tokenizer)])
    given = {item.name: item for item in base.manifest.heads}
    heads = [_entry(given[item.name], fitted, names) for item in HEADS if item.name in given]
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        whole = Path(scratch) / HEAD
        export_head(after, base.manifest.encoder.hidden_size, whole)
        if base.manifest.profile == "fp32":
            shutil.copyfile(whole, out / HEAD)
        else:  # as the bundle's own heads are stored
            half_weights(whole, out / HEAD)
    read_head(out / HEAD)  # raises unless graph and weights score alike
    calibration = _calibration(heads)
    content = _manifest(base, out, name, version, heads, references=references)
    content["training"] = {
        "base": base.manifest.bundle_id,
        "heads": sorted(names),
        "references": base.manifest.bundle_id if references else None,
        "data": describe(conversations),
        "split": DESCRIPTION,
        "command": command_line(),
        "recipe": asdict(recipe),
    }
    tested = _predicted(after, segments["test"], tokenizer)
    content["metrics"] = {
        "test": measure(tested, calibration),
        "test_base": measure(
            _predicted(before, segments["test"], tokenizer),
            _calibration(msgspec.to_builtins(base.manifest.heads)),
        ),
    }
    write_manifest(out, content)
    (out / CARD).write_text(card(content), encoding="utf-8")
    return content


def card(content: dict[str, Any]) -> str:
    """The model card: what it was trained on, and its figures beside those of its base."""
    training, figures = content["training"], content["metrics"]
    lines = [
        f"# {content['name']} {content['version']}",
        "",
        f"Heads on the encoder of {training['base']}; trained: {', '.join(training['heads'])}. "
        "All other heads, rationales and probes are those of that bundle. "
        + (
            f"Empathy index and outcome models are those of {training['references']}, fitted on "
            "the scores of its heads."
            if training["references"]
            else "It has no empathy index and no outcome models."
        ),
        "",
        "## Held-out turns",
        "",
        markdown(figures["test"]),
        "",
        f"## The same turns, scored by {training['base']}",
        "",
        markdown(figures["test_base"]),
        "",
    ]
    return "\n".join(lines)


def _calibrates(conversation: Conversation, seed: int) -> bool:
    return fold_of(key_of(conversation), seed, CALIBRATION_FOLDS) == 0


def _predicted(head: ContextHead, segments: list[Segment], tokenizer: Tokenizer) -> Predictions:
    """Predictions with complete windows, without rationales."""
    found = predict(FrozenHeads(head), segments, FINAL, tokenizer)
    return Predictions(found.heads, {}, found.everywhere)


def _entry(given: bundles.HeadSpec, fitted: Calibration, names: set[str]) -> dict[str, Any]:
    """A head's entry of the manifest: newly calibrated if it learnt, without a rationale."""
    entry: dict[str, Any] = {**msgspec.to_builtins(given), "rationale": None}
    if given.name in names and given.name in fitted.temperatures:
        entry |= {
            "temperature": fitted.temperatures[given.name],
            "bias": fitted.biases[given.name],
            "offsets": fitted.offsets.get(given.name, []),
            "abstain_below": fitted.abstain_below[given.name],
        }
    return entry


def _calibration(heads: list[dict[str, Any]]) -> Calibration:
    return Calibration(
        temperatures={head["name"]: head["temperature"] for head in heads},
        biases={head["name"]: head["bias"] for head in heads if head["bias"]},
        offsets={head["name"]: head["offsets"] for head in heads if head["offsets"]},
    )


def _manifest(
    base: Bundle,
    out: Path,
    name: str,
    version: str,
    heads: list[dict[str, Any]],
    *,
    references: bool,
) -> dict[str, Any]:
    manifest = base.manifest
    probes = {"distress": manifest.distress, "crisis": manifest.crisis}
    for probe in filter(None, probes.values()):
        shutil.copyfile(base.file(probe.file), out / probe.file)
    files = [HEAD, *(probe.file for probe in probes.values() if probe is not None)]
    kept = {key: msgspec.to_builtins(getattr(manifest, key)) for key in REFERENCES}
    return {
        "format": FORMAT,
        "name": name,
        "version": version,
        "shared_encoder": msgspec.to_builtins(encoder_of(manifest)),
        "head": {"file": HEAD, "slots": manifest.head.slots},
        "window": msgspec.to_builtins(manifest.window),
        "heads": heads,
        "languages": list(manifest.languages),
        **(kept if references else {}),
        **{key: msgspec.to_builtins(probe) for key, probe in probes.items()},
        "files": {file: sha256(out / file) for file in files},
    }


def main(
    name: Annotated[str, typer.Option(help="Name of the head bundle, as reported in scores.")],
    out: Annotated[Path, typer.Option(help="Folder of the head bundle.")],
    bundle: Annotated[
        Path, typer.Option(help="The bundle with the encoder: a shipped one's name, or a folder.")
    ] = bundles.DEFAULT_BUNDLE,
    version: Annotated[str, typer.Option(help="Raise it with every new training.")] = "1.0.0",
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    corpus: Annotated[
        list[str] | None, typer.Option(help="Learn from this corpus only; repeat for several.")
    ] = None,
    references: Annotated[
        bool, typer.Option(help="Use the bundle's empathy index and outcome models.")
    ] = True,
    epochs: int = Recipe.epochs,
    seed: int = Recipe.seed,
    threads: int = 1,
) -> None:
    """Train task heads on a bundle's frozen encoder and write them as a head bundle."""
    torch.set_num_threads(threads)
    found = load_for_command(data_dir)
    chosen = [each for each in found if not corpus or each.corpus in corpus]
    if not chosen:
        known = ", ".join(sorted({each.corpus for each in found}))
        raise SystemExit(f"error: no conversation of {', '.join(corpus or [])}; there are {known}")
    base = bundles.load(bundles.find(bundle))
    recipe = Recipe(epochs=epochs, seed=seed)
    content = build(
        base, out, chosen, name, version, recipe, references=references, threads=threads
    )
    size = sum(path.stat().st_size for path in out.iterdir())
    trained = ", ".join(content["training"]["heads"])
    print(f"head bundle {name} {version} written to {out}: {size / 1e6:.1f} MB; trained: {trained}")


if __name__ == "__main__":
    typer.run(main)
