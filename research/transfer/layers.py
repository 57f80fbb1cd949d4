"""Adapters inside the frozen encoder: bottlenecks after each feed-forward block, or LoRA (`peft`).

The paper's own form (section 5, Appendix C). A source adapter is trained first, stays in the
encoder, frozen, and the target's adapter is stacked on it: bottlenecks one after the other, LoRA's
low-rank updates as a sum. Context and text are read together, as one text of two segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn

from models.model.encoder import MAX_TOKENS, load_backbone, pretrained_tokenizer
from research.folds import SEED
from research.transfer.items import Data, Part
from research.transfer.scores import p_value, score
from research.transfer.stack import Adapter, loss_of

Kind = Literal["bottleneck", "lora"]
REDUCTION = 16
RATE, BATCH = 5e-4, 32


class Bottlenecks(nn.Module):
    """One task's adapters, one for each layer of the encoder."""

    def __init__(self, layers: int, size: int) -> None:
        super().__init__()
        self.each = nn.ModuleList(Adapter(size, max(1, size // REDUCTION)) for _ in range(layers))


class Stacked(nn.Module):
    """The frozen encoder with its tasks' adapters in order; the last one is trained.

    Raises ValueError for an architecture whose layers are not laid out as BERT's.
    """

    def __init__(self, kind: Kind, encoder: str | None) -> None:
        super().__init__()
        self.kind = kind
        backbone: Any = load_backbone(encoder=encoder)
        if not hasattr(getattr(backbone, "encoder", None), "layer"):
            message = f"layers of {type(backbone).__name__} are not laid out as BERT's"
            raise ValueError(message)
        for parameter in backbone.parameters():
            parameter.requires_grad = False
        self.size = int(backbone.config.hidden_size)
        self.typed = getattr(backbone.config, "type_vocab_size", 1) > 1
        self.layers = len(backbone.encoder.layer)
        self.tasks = nn.ModuleList()
        self.names: list[str] = []
        if kind == "bottleneck":
            for number, layer in enumerate(backbone.encoder.layer):
                layer.output.register_forward_hook(self._after(number))
        self.backbone = backbone

    def _after(self, number: int) -> Any:
        def hook(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
            del module, inputs
            for task in self.tasks:
                output = task.each[number](output)  # type: ignore[index, operator]
            return output

        return hook

    def add(self, name: str) -> None:
        """Stack the adapters of another task and freeze those before."""
        if self.kind == "bottleneck":
            for parameter in self.tasks.parameters():
                parameter.requires_grad = False
            self.tasks.append(Bottlenecks(self.layers, self.size))
            return
        config = LoraConfig(r=8, lora_alpha=16, target_modules=["query", "value"])
        if not self.names:
            self.backbone = get_peft_model(self.backbone, config, adapter_name=name)
        else:
            self.backbone.add_adapter(name, config)
        self.names.append(name)
        self.backbone.base_model.set_adapter(self.names)
        for key, parameter in self.backbone.named_parameters():
            parameter.requires_grad = "lora_" in key and f".{name}." in key

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Mean of the token states, [n, hidden]."""
        given = {"token_type_ids": types} if self.typed else {}
        states = self.backbone(input_ids=ids, attention_mask=mask, **given).last_hidden_state
        weights = mask.unsqueeze(-1).to(states.dtype)
        found: Tensor = (states * weights).sum(1) / weights.sum(1).clamp(min=1.0)
        return found


@dataclass
class Encoded:
    """Token ids of a part, padded batch by batch."""

    rows: list[Any]

    def batch(self, indices: list[int]) -> tuple[Tensor, Tensor, Tensor]:
        """Ids, mask and types of some items, [n, tokens]."""
        longest = max(len(self.rows[i].ids) for i in indices)

        def padded(name: str) -> Tensor:
            found = np.zeros((len(indices), longest), np.int64)
            for place, index in enumerate(indices):
                values = getattr(self.rows[index], name)
                found[place, : len(values)] = values
            return torch.tensor(found)

        return padded("ids"), padded("attention_mask"), padded("type_ids")


def encoded(part: Part, encoder: str | None) -> Encoded:
    """Tokenise context and text together; a text without context alone."""
    tokenizer = pretrained_tokenizer(encoder)
    tokenizer.enable_truncation(MAX_TOKENS)
    texts = [
        (context, text) if context else text
        for context, text in zip(part.contexts, part.texts, strict=True)
    ]
    return Encoded(tokenizer.encode_batch(texts))


def fit(
    network: Stacked, data: Data, epochs: int, encoder: str | None, rate: float = RATE
) -> nn.Linear:
    """Train the last adapter and a new output; return the output."""
    rows = encoded(data.train, encoder)
    labels = data.train.labels
    if not data.classes:
        labels = (labels - labels.mean()) / (labels.std() or 1.0)
    target = torch.tensor(labels, dtype=torch.int64 if data.classes else torch.float32)
    torch.manual_seed(SEED)
    output = nn.Linear(network.size, max(data.classes, 1))
    trained = [p for p in network.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW([*trained, *output.parameters()], lr=rate)
    network.train()
    for _ in range(epochs):
        for indices in torch.randperm(len(target)).split(BATCH):
            outputs = output(network(*rows.batch(indices.tolist())))
            loss = loss_of(outputs, target[indices], data.classes)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
    network.eval()
    return output


@torch.inference_mode()
def predicted(network: Stacked, output: nn.Linear, data: Data, encoder: str | None) -> NDArray[Any]:
    """Classes or ratings of the test items, [n]."""
    rows = encoded(data.test, encoder)
    found = []
    for indices in torch.arange(len(data.test.texts)).split(BATCH):
        outputs = output(network(*rows.batch(indices.tolist())))
        found.append(outputs.argmax(-1) if data.classes else outputs[:, 0])
    result: NDArray[Any] = torch.cat(found).numpy()
    return result


def run(
    sources: list[Data], targets: list[Data], kind: Kind, epochs: int, encoder: str | None
) -> list[dict[str, Any]]:
    """Each source as intermediate task of each target, with the target's baseline."""
    found = []
    for target in targets:
        alone = Stacked(kind, encoder)
        alone.add("target")
        base = predicted(alone, fit(alone, target, epochs, encoder), target, encoder)
        for source in sources:
            network = Stacked(kind, encoder)
            network.add("source")
            fit(network, source, epochs, encoder)
            network.add("target")
            given = predicted(network, fit(network, target, epochs, encoder), target, encoder)
            gold, classes = target.test.labels, target.classes
            found.append(
                {
                    "kind": kind,
                    "source": source.task.name,
                    "target": target.task.name,
                    "epochs": epochs,
                    "train": len(target.train.texts),
                    "base": score(gold, base, classes),
                    "score": score(gold, given, classes),
                    "p": p_value(gold, base, given, classes),
                }
            )
            print(found[-1], flush=True)
    return found
