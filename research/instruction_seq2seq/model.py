"""An encoder-decoder that ranks label words by their likelihood.

    input ids ── encoder ── states ──┬─ decoder("no")  ── log p(no | input)
                                     └─ decoder("yes") ── log p(yes | input)     the larger one wins

The encoder runs once for all labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

IGNORED = -100
"""Label of padding, which `transformers` leaves out of the decoder's input."""


class ModelError(ValueError):
    """A model cannot be loaded as an encoder-decoder."""


class Seq2SeqClassifier(nn.Module):
    """A pretrained encoder-decoder with its tokenizer, local or from the hub."""

    def __init__(self, network: nn.Module, tokenizer: Any) -> None:
        super().__init__()
        self.network = network
        self.tokenizer = tokenizer

    @classmethod
    def load(cls, name: str) -> Seq2SeqClassifier:
        """Load a folder or a hub name, in float32.

        Raises:
            ModelError: there is no such model, or it is no encoder-decoder.
        """
        try:
            network = AutoModelForSeq2SeqLM.from_pretrained(name, dtype=torch.float32)
            return cls(network, AutoTokenizer.from_pretrained(name))
        except (OSError, ValueError) as problem:
            reason = str(problem).splitlines()[0]
            message = f"{name} cannot be loaded as an encoder-decoder: {reason}"
            raise ModelError(message) from None

    @property
    def parameters_in_all(self) -> int:
        """Number of parameters."""
        return sum(parameter.numel() for parameter in self.network.parameters())

    def add_label_tokens(self, count: int) -> list[str]:
        """Add newly initialised tokens that stand for labels, and return their words."""
        words = [f"<label-{number}>" for number in range(count)]
        self.tokenizer.add_tokens(words, special_tokens=True)
        network: Any = self.network
        size = max(len(self.tokenizer), network.get_input_embeddings().num_embeddings)
        network.resize_token_embeddings(size)
        return words

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, without special tokens."""
        found: list[int] = self.tokenizer(text, add_special_tokens=False).input_ids
        return found

    def labels_of(self, words: Sequence[str]) -> list[Tensor]:
        """Token ids of each label's words with the end token."""
        return [torch.tensor([*self.encode(word), self.tokenizer.eos_token_id]) for word in words]

    def batch(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Ids and mask [n, tokens] of inputs without special tokens; each gets an end token."""
        end = self.tokenizer.eos_token_id
        ids = [torch.tensor([*row, end]) for row in rows]
        mask = [torch.ones_like(row) for row in ids]
        padding = self.tokenizer.pad_token_id
        return (
            pad_sequence(ids, batch_first=True, padding_value=padding),
            pad_sequence(mask, batch_first=True),
        )

    def forward(self, ids: Tensor, mask: Tensor, labels: Sequence[Tensor]) -> Tensor:
        """Log-likelihood of each label given each input, [n, labels]."""
        network: Any = self.network
        states = network.get_encoder()(input_ids=ids, attention_mask=mask)
        columns = [
            self._likelihood(states, mask, label.to(ids.device).repeat(len(ids), 1))
            for label in labels
        ]
        return torch.stack(columns, dim=1)

    def gold(self, ids: Tensor, mask: Tensor, labels: Sequence[Tensor]) -> Tensor:
        """Log-likelihood of each input's own label, [n]; what plain generation is trained on."""
        network: Any = self.network
        states = network.get_encoder()(input_ids=ids, attention_mask=mask)
        padded = pad_sequence(list(labels), batch_first=True, padding_value=IGNORED)
        return self._likelihood(states, mask, padded.to(ids.device))

    def _likelihood(self, states: Any, mask: Tensor, labels: Tensor) -> Tensor:
        """Sum of the log-probabilities of the labels' tokens [n, length], [n]."""
        network: Any = self.network
        logits = network(encoder_outputs=states, attention_mask=mask, labels=labels).logits
        known = labels != IGNORED
        each = logits.float().log_softmax(-1).gather(-1, labels.clamp(min=0).unsqueeze(-1))
        found: Tensor = (each.squeeze(-1) * known).sum(-1)
        return found


def name_of(model: str) -> str:
    """The model's name in tables: its hub name, or its folder's name."""
    return Path(model).name if Path(model).is_dir() else model
