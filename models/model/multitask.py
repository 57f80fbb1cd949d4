"""The whole model: one turn encoder, one context head, and saving to a folder."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import AutoConfig, PretrainedConfig

from models.labels import HEADS
from models.model.batches import EncoderChunk, Step, Targets
from models.model.encoder import (
    TurnEncoder,
    base_config,
    load_backbone,
    load_tokenizer,
    pretrained_tokenizer,
    random_backbone,
)
from models.model.heads import ContextHead, through_half


class MultitaskModel(nn.Module):
    """Scores turns as the service does: encode each turn once, then score it with its window."""

    def __init__(self, config: PretrainedConfig, backbone: nn.Module) -> None:
        super().__init__()
        self.config = config
        self.encoder = TurnEncoder(backbone, config.hidden_size)
        self.head = ContextHead(config.hidden_size)

    def encode(self, chunks: list[EncoderChunk], turns: int) -> tuple[Tensor, list[Tensor]]:
        """Vectors [turns, 2, hidden] in the order of the step, and rationale logits by chunk."""
        training, outputs = self.training, []
        for chunk in chunks:
            # Context-only turns get no gradient and no dropout, at a third of the cost.
            self.encoder.train(training and not chunk.context_only)
            with torch.set_grad_enabled(torch.is_grad_enabled() and not chunk.context_only):
                outputs.append(self._turns(chunk))
        self.encoder.train(training)
        order = torch.cat([chunk.turns for chunk in chunks])
        vectors = torch.cat([vector for vector, _ in outputs])
        positions = torch.empty_like(order)
        positions[order] = torch.arange(turns, device=order.device)
        return vectors[positions], [logits for _, logits in outputs]

    def _turns(self, chunk: EncoderChunk) -> tuple[Tensor, Tensor]:
        if chunk.lower is None:
            outputs: tuple[Tensor, Tensor] = self.encoder(chunk.input_ids, chunk.attention_mask)
            return outputs
        return self.encoder.upper(chunk.lower, chunk.attention_mask, self.encoder.frozen_layers)

    def score(self, vectors: Tensor, targets: Targets) -> dict[str, Tensor]:
        """Logits of every head for the step's targets, each [targets, labels]."""
        logits = self.head(*windows_of(through_half(vectors), targets))
        return {head.name: values for head, values in zip(HEADS, logits, strict=True)}

    def forward(self, step: Step) -> tuple[dict[str, Tensor], list[Tensor]]:
        """Logits by head for the step's targets, and rationale logits by encoder chunk."""
        vectors, rationale_logits = self.encode(step.chunks, step.turns)
        return self.score(vectors, step.targets), rationale_logits


def windows_of(vectors: Tensor, targets: Targets) -> tuple[Tensor, ...]:
    """Inputs of the context head for the targets, from the step's vectors [turns, 2, hidden]."""
    return (
        vectors[targets.turn],
        targets.role,
        vectors[targets.context, 1],
        targets.context_role,
        targets.context_distance,
        targets.context_mask,
    )


def from_base(
    encoder: str | None = None, adapted: Path | None = None
) -> tuple[MultitaskModel, Tokenizer]:
    """A model to train and its tokenizer: a pretrained encoder (None: the packaged one), new heads.

    `encoder` is a local folder or a hub name that `transformers` can load; `adapted` a file of
    weights that `research.recipe.masked_language` has written for it.
    """
    model = MultitaskModel(base_config(encoder), load_backbone(adapted, encoder))
    model.encoder.freeze_embeddings()
    return model, pretrained_tokenizer(encoder)


def save(
    model: MultitaskModel, tokenizer: Tokenizer, folder: Path, about: dict[str, object]
) -> None:
    """Write weights, configuration, tokenizer and `about` (training metadata)."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), folder / "model.pt")
    model.config.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "training.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def load(folder: Path) -> tuple[MultitaskModel, Tokenizer]:
    """Load a saved model, in evaluation mode, and its tokenizer."""
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    model = MultitaskModel(config, random_backbone(config))
    state = torch.load(folder / "model.pt", map_location="cpu", weights_only=True)
    model.load_state_dict(state)
    return model.eval(), load_tokenizer(folder / "tokenizer.json")
