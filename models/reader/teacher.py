"""Train a language model as a teacher: `python -m models.reader.teacher --out build/teacher`.

The lower layers of a decoder of 1.5 billion parameters (Qwen2.5-Coder-1.5B-Instruct) read the same
turns as the reader, with the same heads on top, and learn from the same judgements through low-rank
adapters (Hu et al. 2022). They are too large for the service. `python -m models.reader.train
--teacher` follows their logits, also on answers that nobody judged (Hinton et al. 2015).
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer

from models.data.corpora import resolve_data_dir
from models.reader import corpora, mined, written
from models.reader.model import OUTPUTS, Reader
from models.reader.train import UNTAUGHT, Read, Recipe, fit, fold_number, predict, tokenised, voiced

LAYERS = 18
"""Lower layers that are kept; the upper ones serve the next word."""
SHARES = {
    "quartets": 3.0,
    "edits": 3.0,
    "manners_plain_plain": 1.5,
    "manners_plain_warm": 1.5,
    "manners_warm_plain": 1.5,
    "manners_warm_warm": 1.5,
    "esconv_feedback": 2.0,
    "esconv_areas": 2.0,
    "rated_human": 2.0,
    "next_answers": 0.12,
    "snli": 0.1,
    "eaf_model": 0.15,
    "wassa_chats": 0.3,
    "crisis_rallypoint": 0.4,
    "crisis_cssrs": 0.3,
    "crisis_inputs": 0.3,
    "miti_sentences": 0.5,
    "plain_clients": 0.5,
}
"""Passes over a corpus in the one epoch, where it is not one."""
ADAPTED = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
RANK = 32
PREDICTED_TOGETHER = 384


def recipe(seed: int = 17) -> Recipe:
    """The teacher's recipe: one epoch, in which contrast is passed three times."""
    return Recipe(epochs=1, seed=seed, rate=2e-4, batch=96, weight_decay=0.0, shares=dict(SHARES))


def new_teacher(encoder: str) -> Reader:
    """The lower layers of a decoder in bfloat16 with adapters in float32."""
    config = AutoConfig.from_pretrained(encoder)
    config.num_hidden_layers = min(LAYERS, config.num_hidden_layers)
    config.layer_types = config.layer_types[: config.num_hidden_layers]
    backbone: nn.Module = AutoModel.from_pretrained(encoder, config=config, dtype=torch.bfloat16)
    backbone.requires_grad_(False)
    adapters = LoraConfig(
        r=RANK, lora_alpha=2 * RANK, lora_dropout=0.0, target_modules=list(ADAPTED)
    )
    backbone = inject_adapter_in_model(adapters, backbone)
    adapted: Any  # the attribute is peft's, without a declaration
    for adapted in backbone.modules():
        if isinstance(adapted, BaseTunerLayer):
            vars(adapted)["cast_input_dtype_enabled"] = False  # autocast casts what it needs
    for name, parameter in backbone.named_parameters():
        if "lora_" in name:
            parameter.data = parameter.data.float()
    return Reader(backbone, config.hidden_size, causal=True)


def judged(reader: Reader, reads: list[Read], padding: int) -> np.ndarray:
    """Logits of all reads, float16 [reads, sum of widths]; NaN for those of `UNTAUGHT`."""
    places = [i for i, read in enumerate(reads) if read.example.corpus not in UNTAUGHT]
    logits = np.full((len(reads), sum(OUTPUTS.values())), np.nan, np.float16)
    logits[places] = predict(reader, [reads[i] for i in places], padding, PREDICTED_TOGETHER)
    return logits


def main(
    encoder: Annotated[str, typer.Option(help="Folder of a pretrained decoder.")],
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("build/teacher"),
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    fold: Annotated[int | None, typer.Option(help="Hold this fold out.")] = None,
    contrast: Annotated[Path, typer.Option(help="Folder of the voices.")] = written.CONTRAST,
    share: Annotated[float, typer.Option(help="Share of the data, for trial runs.")] = 1.0,
) -> None:
    """Train on what is not held out and write the logits of everything."""
    folder = resolve_data_dir(data_dir)
    known = [*corpora.load(folder), *written.load(folder, contrast)]
    every = max(1, round(1 / share))
    reads = tokenised([*known, *mined.load(folder, contrast)][::every], encoder)
    teach(reads, len(known[::every]), encoder, out, fold)


def teach(reads: list[Read], known: int, encoder: str, out: Path, fold: int | None) -> None:
    """Train a teacher on the first `known` reads but those of the fold; write its logits."""
    voices = sorted({read.example.key for read in reads if voiced(read.example.corpus)})
    held = [
        fold is not None and fold_number(read.example, 17, voices) == fold for read in reads[:known]
    ]
    padding = AutoTokenizer.from_pretrained(encoder).pad_token_id
    torch.backends.cuda.enable_cudnn_sdp(False)  # it makes a plan for each shape, and gave NaN
    reader = new_teacher(encoder)
    own = recipe()
    training = [read for read, is_held in zip(reads, held, strict=False) if not is_held]
    fit(reader, training, own, padding)
    out.mkdir(parents=True, exist_ok=True)
    logits = judged(reader, reads, padding)
    np.savez(out / "judged.npz", logits=logits)
    places = np.array([place for place, is_held in enumerate(held) if is_held], np.int64)
    np.savez(out / "predictions.npz", places=places, logits=logits[places])
    about = {"recipe": asdict(own), "fold": fold, "read": len(training)}
    (out / "training.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
